import type { ExecutorMemory } from '../../../callbacks/worker-messages.js';
import { resolveWindow } from '../../../kvcache/kv-cache-options.js';
import { attendsWithinPictures, type PictureRule } from '../../../network/attention-mask.js';
import type { NetworkPlan } from '../../../network/plan.js';
import { promptRowWidth } from '../../../network/prompt-rows.js';
import type { PackedBatch } from '../../packed-call/packed-batch.js';
import type { SamplingBatch, SamplingOutput } from '../../packed-call/sampling-batch.js';
import type { BlockAccess, Executor, ExecutorOptions, StateAccess } from '../executor.js';
import { type BatchLimits, checkBatch } from './checks/check-batch.js';
import { checkOptions } from './checks/check-options.js';
import { checkSampling, checkSamplingTypes } from './checks/check-sampling.js';
import { checkArrays, checkEntries } from './checks/fields.js';
import type { NetworkRunner, OpenRunner, RunnableEngine } from './network-runner.js';
import { returnSampledRows, returnTokenRows } from './returned-rows.js';
import { HostSampler } from './sampling/host-sampler.js';

interface BegunStep {
  batch: PackedBatch;
  sampling: SamplingBatch;
  output: SamplingOutput;
}

/**
 * An executor whose network a tensor library runs: adds checks, returned logits and sampling on the host to a
 * NetworkRunner.
 *
 * This executor has no thread of its own. `begin` only checks, and `finish` computes: if `begin` computed, the caller's
 * work in between (packing, answering with the results of the step before) would have to wait for a whole step.
 */
export class PortableExecutor implements Executor {
  readonly name: NetworkRunner['name'];
  /** Device or instructions of the runner: see NetworkRunner. */
  readonly instructionSet: string;
  readonly options: Readonly<ExecutorOptions>;
  readonly vocabSize: number;
  readonly promptRowWidth: number;
  readonly turnsByGrid: boolean;
  readonly pictureRule: PictureRule;
  readonly blockAccess?: BlockAccess;
  readonly #plan: NetworkPlan;
  readonly #limits: BatchLimits;
  readonly #sampler: HostSampler;
  #runner: NetworkRunner | null;
  #begun: BegunStep | null = null;
  /** Number of logits' rows in the last forward that completed. */
  #numLogitRows = 0;
  /** The logits of the last forward if they have been handed out, and so may have been written to. */
  #view: Float32Array | null = null;

  /**
   * Makes an executor of the runner that `openRunner` opens; throws one sentence if the options do not fit or the
   * runner cannot be opened.
   */
  static async open(
    engine: RunnableEngine,
    options: ExecutorOptions,
    openRunner: OpenRunner,
  ): Promise<PortableExecutor> {
    checkOptions(engine.plan, options);
    return new PortableExecutor(engine.plan, options, await openRunner(engine, options));
  }

  private constructor(plan: NetworkPlan, options: ExecutorOptions, runner: NetworkRunner) {
    this.name = runner.name;
    this.instructionSet = runner.device;
    this.options = { ...options };
    this.vocabSize = plan.vocabSize;
    this.promptRowWidth = promptRowWidth(plan);
    const bothWays = runner.attendsWithinPictures ? 'bothWays' : 'unsupported';
    this.pictureRule = attendsWithinPictures(plan) ? bothWays : 'causal';
    this.turnsByGrid = plan.attention.ropeAxes !== undefined;
    this.#plan = plan;
    this.#limits = { plan, options, window: resolveWindow(options), promptRowWidth: this.promptRowWidth };
    this.#sampler = new HostSampler(plan.vocabSize);
    this.#runner = runner;
    if (runner.blockAccess !== undefined) this.blockAccess = this.#accessTo(runner.blockAccess);
  }

  step(batch: PackedBatch, sampling: SamplingBatch, output: SamplingOutput): void {
    const runner = this.#idle();
    this.#checkStep(batch, sampling, output);
    this.#run(runner, batch, sampling, output);
  }

  begin(batch: PackedBatch, sampling: SamplingBatch, output: SamplingOutput): void {
    this.#idle();
    this.#checkStep(batch, sampling, output);
    this.#begun = { batch, sampling, output };
  }

  finish(): void {
    const runner = this.#open();
    const begun = this.#begun;
    if (begun === null) throw new Error('No step has been begun; begin() must come before finish().');
    this.#begun = null;
    this.#run(runner, begun.batch, begun.sampling, begun.output);
  }

  forward(batch: PackedBatch): Float32Array {
    const runner = this.#idle();
    checkBatch(batch, this.#limits);
    this.#forward(runner, batch);
    if (this.#numLogitRows === 0) return new Float32Array(0);
    this.#view = runner.logits();
    return this.#view;
  }

  sample(sampling: SamplingBatch, output: SamplingOutput): void {
    const runner = this.#idle();
    this.#requireLogits();
    checkSamplingTypes(sampling, output);
    checkSampling(sampling, output, { logitRows: this.#numLogitRows, vocabSize: this.vocabSize });
    this.#sample(runner, sampling, output);
  }

  copyBlocks(source: Int32Array, target: Int32Array): void {
    const runner = this.#idle();
    checkArrays({ source, target }, 'integers', ['source', 'target']);
    if (source.length !== target.length) {
      throw new Error(`copyBlocks: source has ${source.length} blocks and target ${target.length}.`);
    }
    checkEntries(source, source.length, 0, this.#numBlocks, 'source');
    checkEntries(target, target.length, 0, this.#numBlocks, 'target');
    this.#view = null;
    if (source.length > 0) runner.copyBlocks(source, target);
  }

  #checkSlots(lists: Record<string, Int32Array>): void {
    checkArrays(lists, 'integers', Object.keys(lists));
    const { numStateSlots = 0 } = this.options;
    for (const [name, slots] of Object.entries(lists))
      checkEntries(slots, slots.length, 0, numStateSlots, name);
  }

  #accessTo({ bytesPerBlock, readBlocks, writeBlocks, states }: BlockAccess): BlockAccess {
    const check = (blocks: Int32Array, bytes: Uint8Array) => {
      this.#idle();
      checkArrays({ blocks }, 'integers', ['blocks']);
      checkEntries(blocks, blocks.length, 0, this.#numBlocks, 'blocks');
      checkBytes(bytes, blocks.length, bytesPerBlock, 'blocks');
      this.#view = null;
    };
    return {
      bytesPerBlock,
      readBlocks: (blocks, target) => {
        check(blocks, target);
        readBlocks(blocks, target);
      },
      writeBlocks: (blocks, source) => {
        check(blocks, source);
        writeBlocks(blocks, source);
      },
      ...(states && { states: this.#accessToStates(states) }),
    };
  }

  #accessToStates({ bytesPerSlot, readStates, writeStates }: StateAccess): StateAccess {
    const check = (slots: Int32Array, bytes: Uint8Array) => {
      this.#idle();
      this.#checkSlots({ slots });
      checkBytes(bytes, slots.length, bytesPerSlot, 'slots');
    };
    return {
      bytesPerSlot,
      readStates: (slots, target) => {
        check(slots, target);
        readStates(slots, target);
      },
      writeStates: (slots, source) => {
        check(slots, source);
        writeStates(slots, source);
      },
    };
  }

  areFinite(blocks: Int32Array): boolean {
    const runner = this.#idle();
    checkArrays({ blocks }, 'integers', ['blocks']);
    checkEntries(blocks, blocks.length, 0, this.#numBlocks, 'blocks');
    this.#view = null;
    return blocks.length === 0 || runner.areFinite(blocks);
  }

  copyStates(source: Int32Array, target: Int32Array): void {
    const runner = this.#idle();
    this.#checkSlots({ source, target });
    if (source.length !== target.length) {
      throw new Error(`copyStates: source has ${source.length} states and target ${target.length}.`);
    }
    this.#view = null;
    if (source.length > 0) runner.copyStates?.(source, target);
  }

  areStatesFinite(slots: Int32Array): boolean {
    const runner = this.#idle();
    this.#checkSlots({ slots });
    return slots.length === 0 || runner.areStatesFinite?.(slots) === true;
  }

  memory(): ExecutorMemory {
    const { kvCacheBytes: blockBytes, stateBytes = 0, ...memory } = this.#open().memory();
    const { numSecondaryBlocks = 0 } = this.options;
    const secondaryKvCacheBytes = Math.round((blockBytes * numSecondaryBlocks) / this.#numBlocks);
    const kvCacheBytes = blockBytes - secondaryKvCacheBytes + stateBytes;
    return { ...memory, kvCacheBytes, secondaryKvCacheBytes };
  }

  /** Frees all memory. Further calls of `close` do nothing, others throw. Refused between `begin` and `finish`. */
  close(): void {
    if (this.#begun !== null) {
      throw new Error(
        'The executor cannot be closed while a begun step is running; finish() must come first.',
      );
    }
    this.#view = null;
    this.#runner?.close();
    this.#runner = null;
  }

  /** Number of blocks in both pools. */
  get #numBlocks(): number {
    return this.options.numBlocks + (this.options.numSecondaryBlocks ?? 0);
  }

  #open(): NetworkRunner {
    if (this.#runner === null) throw new Error('The executor is closed.');
    return this.#runner;
  }

  #idle(): NetworkRunner {
    const runner = this.#open();
    if (this.#begun !== null) throw new Error('A begun step is running; finish() must come first.');
    return runner;
  }

  #checkStep(batch: PackedBatch, sampling: SamplingBatch, output: SamplingOutput): void {
    checkBatch(batch, this.#limits);
    checkSamplingTypes(sampling, output);
    this.#requireLogits();
    checkSampling(sampling, output, { logitRows: batch.numLogitRows, vocabSize: this.vocabSize });
  }

  #requireLogits(): void {
    if (this.#plan.outputWidth === this.#plan.vocabSize) return;
    throw new Error('This network has no logits over a vocabulary to sample from; forward() gives its rows.');
  }

  #run(runner: NetworkRunner, batch: PackedBatch, sampling: SamplingBatch, output: SamplingOutput): void {
    this.#forward(runner, batch);
    this.#sample(runner, sampling, output);
  }

  #forward(runner: NetworkRunner, batch: PackedBatch): void {
    this.#numLogitRows = 0;
    this.#view = null;
    runner.forward(batch);
    returnTokenRows(batch, runner, this.#sampler, this.options.maxLogitRows);
    if (batch.numLogitRows > 0) runner.head(batch.logitRows.subarray(0, batch.numLogitRows));
    this.#numLogitRows = batch.numLogitRows;
    returnSampledRows(batch, () => runner.logits(), this.#sampler);
  }

  /** Lets the runner sample where the logits are, unless they have been handed out and may have changed. */
  #sample(runner: NetworkRunner, sampling: SamplingBatch, output: SamplingOutput): void {
    if (sampling.numRows === 0) {
      output.topStart[0] = 0;
      return;
    }
    const view = this.#view;
    if (view === null && runner.sample?.(sampling, output)) return;
    this.#sampler.sample(sampling, output, view ?? runner.logits());
  }
}

function checkBytes(bytes: Uint8Array, count: number, bytesOfEach: number, what: string): void {
  if (!(bytes instanceof Uint8Array)) throw new Error(`The bytes of ${what} must be a Uint8Array.`);
  if (bytes.length === count * bytesOfEach) return;
  throw new Error(
    `The array has ${bytes.length} bytes; ${count} ${what} of ${bytesOfEach} bytes are expected.`,
  );
}
