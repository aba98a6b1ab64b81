import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { codeOf } from '../../../base/skein-error.js';
import { defaultThreads } from '../../../base/topology.js';
import type { InstructionSet } from '../../../callbacks/gpt-manager-options.js';
import type { ExecutorMemory } from '../../../callbacks/worker-messages.js';
import { kvBytesPerBlock } from '../../../kvcache/kv-cache-size.js';
import { attendsWithinPictures, type PictureRule } from '../../../network/attention-mask.js';
import type { NetworkPlan } from '../../../network/plan.js';
import { promptRowWidth } from '../../../network/prompt-rows.js';
import { PACKED_FILE } from '../../directory/engine-directory.js';
import { keepChecksums, lacksChecksum } from '../../directory/source-checksums-file.js';
import { hasSourceChanged } from '../../directory/source-tensors.js';
import type { PackedBatch } from '../../packed-call/packed-batch.js';
import type { SamplingBatch, SamplingOutput } from '../../packed-call/sampling-batch.js';
import type { RankPlan } from '../../sharding/rank-plan.js';
import { splitPlan } from '../../sharding/split-plan.js';
import type {
  AdapterSlots,
  BlockAccess,
  Executor,
  ExecutorOptions,
  ExpertReads,
  StateAccess,
} from '../executor.js';
import type { LoadableEngine } from '../executor-kind.js';
import { countedExperts, type ExpertBytes } from '../memory-budget.js';
import { choosePlaces } from '../thread-places.js';
import { type AdapterPart, AdapterProducts } from './adapter-parts.js';
import type { NativeExecutorHandle, NativeExecutorOptions, NativeMemory, NativeTurns } from './addon.js';
import { chooseInstructionSet } from './instruction-set.js';
import { loadAddon } from './load-addon.js';
import { ownAdapterParts } from './own-adapter-parts.js';

/**
 * Parts of an engine that the native executor needs: weights.bin is mapped, never read into JavaScript, and a model's file that has
 * matrices is read only to pack them. The packed weights
 * of each instruction set are kept in its folder; if that is read-only they are packed at each start.
 */
export type NativeEngine = LoadableEngine;

/**
 * Part of the packed file's name; its header holds the rest, and a file that does not match is made again.
 */
const PACKED_FORMAT_VERSION = 3;
/** The addon's error code for matrices that are to be packed and have changed since the build. */
const WEIGHTS_CHANGED = 'SKEIN_WEIGHTS_CHANGED';

/** Runs a network on the CPU through the C++ addon. */
export class NativeExecutor implements Executor {
  readonly name = 'native';
  readonly instructionSet: InstructionSet;
  readonly options: Readonly<ExecutorOptions>;
  readonly vocabSize: number;
  readonly promptRowWidth: number;
  readonly turnsByGrid: boolean;
  readonly pictureRule: PictureRule;
  readonly adapters?: AdapterSlots;
  /** Absent for a rank, which has a part of each block, and where no layer keeps anything of a token. */
  readonly blockAccess?: BlockAccess;
  readonly #handle: NativeExecutorHandle;
  readonly #secondaryKvCacheBytes: number;
  readonly #experts: ExpertBytes;
  readonly #partsHere: (parts: readonly AdapterPart[]) => readonly AdapterPart[];

  /**
   * Maps the weights, packs them on first use, and takes all memory. Throws if the addon is not built, the plan and the
   * weights do not agree, or there is not enough memory.
   */
  constructor(engine: NativeEngine, options: ExecutorOptions) {
    const native = nativeOptions(engine, options);
    this.instructionSet = native.instructionSet;
    this.options = { ...options, instructionSet: this.instructionSet };
    this.vocabSize = engine.plan.vocabSize;
    this.promptRowWidth = promptRowWidth(engine.plan);
    this.pictureRule = attendsWithinPictures(engine.plan) ? 'bothWays' : 'causal';
    this.turnsByGrid = engine.plan.attention.ropeAxes !== undefined;
    this.#secondaryKvCacheBytes = secondaryBytes(engine, options);
    this.#handle = createExecutor(native, engine.packedFolder);
    this.#experts = this.#handle.memory().experts;
    if (engine.held === undefined && engine.tensors.some(lacksChecksum)) this.#keepChecksums(engine);
    const { plan } = native;
    this.#partsHere = 'origins' in plan ? (parts) => ownAdapterParts(plan, parts) : (parts) => parts;
    const { caches, states = [] } = engine.plan;
    if (options.seat === undefined && caches.length + states.length > 0)
      this.blockAccess = accessTo(this.#handle);
    if (native.maxAdapters > 0) this.adapters = slotsOf(this, engine.plan, native);
  }

  /** Keeps the checksums of what was just packed out of the model's file. @throws Error if that file is not the one of the engine any more */
  #keepChecksums({ tensors, packedFolder }: NativeEngine): void {
    const found = this.#handle.packedChecksums();
    if (found.length === 0) return;
    if (hasSourceChanged(tensors)) {
      this.#handle.close();
      removePackedFiles(packedFolder);
      const { path } = tensors.find(({ sourceFile }) => sourceFile !== undefined)!.sourceFile!;
      throw new Error(
        `${path} is not as it was when the engine in ${packedFolder} was made: what was packed of it is thrown away; start again.`,
      );
    }
    keepChecksums(packedFolder, tensors, found);
    // The folder may be one that cannot be written to.
    for (const { tensor, checksum } of found) tensors[tensor]!.checksum ??= checksum;
  }

  /** Result that memory() of such an executor would have, without taking any memory. Throws like the constructor. */
  static measure(engine: NativeEngine, options: ExecutorOptions): ExecutorMemory {
    return NativeExecutor.measureWithExperts(engine, options).memory;
  }

  /** The same, and what of the weights is experts. */
  static measureWithExperts(
    engine: NativeEngine,
    options: ExecutorOptions,
  ): { memory: ExecutorMemory; experts: ExpertBytes } {
    const { experts, ...memory } = loadAddon().measureExecutor(nativeOptions(engine, options));
    return { memory: withSecondary(memory, secondaryBytes(engine, options)), experts };
  }

  /** Instruction set that an executor with these options computes with. */
  static instructionSetOf({ instructionSet }: Pick<ExecutorOptions, 'instructionSet'>): InstructionSet {
    const supported = loadAddon().supportedInstructionSets();
    return chooseInstructionSet(supported, instructionSet, process.env.SKEIN_ISA);
  }

  step(batch: PackedBatch, sampling: SamplingBatch, output: SamplingOutput): void {
    this.#handle.step(batch, sampling, output);
  }

  /** Begins a step in a thread of the addon's own, which starts with the first call, instead of the calling one. */
  begin(batch: PackedBatch, sampling: SamplingBatch, output: SamplingOutput): void {
    this.#handle.begin(batch, sampling, output);
  }

  finish(): void {
    this.#handle.finish();
  }

  /** Of rank 0 of several stages: begins a forward while others are begun. */
  beginForwardOfStage(batch: PackedBatch): void {
    this.#handle.beginForward(batch);
  }

  finishForwardOfStage(): Float32Array {
    return this.#handle.finishForward();
  }

  /** Of the same: waits for the results of all begun steps, which stay begun. */
  completeBegun(): void {
    this.#handle.complete();
  }

  forward(batch: PackedBatch): Float32Array {
    return this.#handle.forward(batch);
  }

  /** The forward of a rank that does not get the network's output. */
  follow(batch: PackedBatch): void {
    this.#handle.follow(batch);
  }

  /** Puts an adapter into a slot, by its changes of the whole network's products; a rank keeps those of its own outputs. */
  putAdapter(slot: number, parts: readonly AdapterPart[]): void {
    this.#handle.putAdapter(slot, this.#partsHere(parts));
  }

  clearAdapter(slot: number): void {
    this.#handle.clearAdapter(slot);
  }

  sample(sampling: SamplingBatch, output: SamplingOutput): void {
    this.#handle.sample(sampling, output);
  }

  copyBlocks(source: Int32Array, target: Int32Array): void {
    this.#handle.copyBlocks(source, target);
  }

  copyStates(source: Int32Array, target: Int32Array): void {
    this.#handle.copyStates(source, target);
  }

  areStatesFinite(slots: Int32Array): boolean {
    return this.#handle.areStatesFinite(slots);
  }

  areFinite(blocks: Int32Array): boolean {
    return this.#handle.areFinite(blocks);
  }

  /** Of experts that are read from the disk those count that memory has room for. */
  memory(): ExecutorMemory {
    const { experts, weightBytes, ...memory } = this.#handle.memory();
    const onDisk = experts.bytes - countedExperts(experts, this.options.expertFraction ?? 1);
    return withSecondary({ ...memory, weightBytes: weightBytes - onDisk }, this.#secondaryKvCacheBytes);
  }

  expertReads(): ExpertReads | null {
    const { expertFraction = 1 } = this.options;
    if (expertFraction === 1 || this.#experts.bytes === 0) return null;
    const { bytes: readBytes, bytesPerSecond } = this.#handle.expertReads();
    return {
      bytes: this.#experts.bytes,
      countedBytes: countedExperts(this.#experts, expertFraction),
      bytesPerToken: this.#experts.bytesPerToken,
      bytesPerSecond: bytesPerSecond || null,
      readBytes,
    };
  }

  waitedMs(): number {
    return 1000 * this.#handle.turns().waitedSeconds;
  }

  /** Processor time of this worker's executors, and of the engines of other workers. */
  turns(): NativeTurns {
    return this.#handle.turns();
  }

  /** Seconds per kind of op since the last call; counting goes on if `on` is true. */
  profile(on: boolean): Record<string, number> {
    return this.#handle.profile(on);
  }

  /**
   * Frees threads and memory; views of the logits become empty. Further calls of `close` do nothing, others throw.
   * Refused between `begin` and `finish`.
   */
  close(): void {
    this.#handle.close();
  }
}

function slotsOf(
  executor: NativeExecutor,
  plan: NetworkPlan,
  { maxAdapters: maxSlots, maxLoraRank: maxRank }: NativeExecutorOptions,
): AdapterSlots {
  const products = new AdapterProducts(plan);
  return {
    maxSlots,
    maxRank,
    put: (slot, weights) => executor.putAdapter(slot, products.partsOf(weights)),
    clear: (slot) => executor.clearAdapter(slot),
  };
}

function accessTo(handle: NativeExecutorHandle): BlockAccess {
  const bytesPerSlot = handle.bytesPerStateSlot();
  const states: StateAccess = {
    bytesPerSlot,
    readStates: (slots, target) => handle.readStates(slots, target),
    writeStates: (slots, source) => handle.writeStates(slots, source),
  };
  return {
    ...(bytesPerSlot > 0 && { states }),
    bytesPerBlock: handle.bytesPerBlock(),
    readBlocks: (blocks, target) => handle.readBlocks(blocks, target),
    writeBlocks: (blocks, source) => handle.writeBlocks(blocks, source),
  };
}

/**
 * Makes the executor. If matrices to be packed have changed since the build, the addon refuses them; then all packed files are
 * removed. Starts do not check the matrices of weights.bin while there is a packed file, of any instruction set: without one
 * the next start finds the damage and builds the engine again.
 */
function createExecutor(options: NativeExecutorOptions, packedFolder: string): NativeExecutorHandle {
  try {
    return loadAddon().createExecutor(options);
  } catch (error) {
    if (codeOf(error) === WEIGHTS_CHANGED) removePackedFiles(packedFolder);
    throw error;
  }
}

function removePackedFiles(folder: string): void {
  try {
    for (const name of readdirSync(folder)) if (PACKED_FILE.test(name)) rmSync(join(folder, name));
  } catch {
    // The folder cannot be written to; the error is reported all the same.
  }
}

/** Splits the memory of the two pools: the addon has only one. */
function withSecondary(memory: Omit<NativeMemory, 'experts'>, secondaryKvCacheBytes: number): ExecutorMemory {
  const kvCacheBytes = memory.kvCacheBytes - secondaryKvCacheBytes;
  return { ...memory, kvCacheBytes, secondaryKvCacheBytes };
}

function secondaryBytes(engine: NativeEngine, options: ExecutorOptions): number {
  const { numSecondaryBlocks = 0, tokensPerBlock, kvDtype } = options;
  return numSecondaryBlocks * kvBytesPerBlock(planOf(engine, options).caches, tokensPerBlock, kvDtype);
}

/** The network, or this rank's part of it. */
function planOf(engine: NativeEngine, { seat }: ExecutorOptions): NetworkPlan | RankPlan {
  return seat === undefined ? engine.plan : splitPlan(engine, seat.shape, seat.rank);
}

/** Weights packed for a rank have a file of their own. */
function packedName(instructionSet: InstructionSet, { seat }: ExecutorOptions): string {
  const name = `packed-${instructionSet}-v${PACKED_FORMAT_VERSION}`;
  if (seat === undefined) return `${name}.bin`;
  const { tensorParallelSize, pipelineParallelSize } = seat.shape;
  return `${name}-rank-${seat.rank}-of-${tensorParallelSize}x${pipelineParallelSize}.bin`;
}

function nativeOptions(
  engine: NativeEngine,
  { pinThreads = 'off', expertFraction = 1, ...options }: ExecutorOptions,
): NativeExecutorOptions {
  const places = choosePlaces(pinThreads, options.threads, options.seat?.here);
  const instructionSet = NativeExecutor.instructionSetOf(options);
  return {
    maxAttentionWindow: 0,
    sinkTokenLength: 0,
    maxAdapters: 0,
    maxLoraRank: 0,
    processors: defaultThreads(),
    ...options,
    numBlocks: options.numBlocks + (options.numSecondaryBlocks ?? 0),
    plan: planOf(engine, options),
    ...(places === null ? {} : { places }),
    ...(options.seat?.group === undefined ? {} : { group: options.seat.group }),
    weightsFile: engine.weightsFile,
    ...(engine.held === undefined ? {} : { held: engine.held }),
    tensors: engine.tensors,
    expertsFromDisk: expertFraction < 1,
    packedFile: join(engine.packedFolder, packedName(instructionSet, options)),
    instructionSet,
  };
}
