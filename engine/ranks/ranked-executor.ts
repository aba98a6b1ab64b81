import { messageOf } from '../../base/error-text.js';
import { codeOf } from '../../base/skein-error.js';
import type { ExecutorMemory } from '../../callbacks/worker-messages.js';
import type { PictureRule } from '../../network/attention-mask.js';
import {
  type AdapterSlots,
  type Executor,
  ExecutorLostError,
  type ExecutorOptions,
} from '../executors/executor.js';
import type { LoadableEngine } from '../executors/executor-kind.js';
import { AdapterProducts } from '../executors/native/adapter-parts.js';
import { NativeExecutor } from '../executors/native/native-executor.js';
import type { PackedBatch } from '../packed-call/packed-batch.js';
import type { SamplingBatch, SamplingOutput } from '../packed-call/sampling-batch.js';
import { type GroupHandle, RANKS_LOST, type RankSeat } from '../sharding/group.js';
import { sizeOf } from '../sharding/rank-shape.js';
import { leastMicroBatch } from '../sharding/stages.js';
import { CALL_KINDS, type CallArray, type CallKind, CallWriter } from './call-bytes.js';
import { adapterArrays, batchArrays, openArrays } from './call-codec.js';
import { modelName } from './model-name.js';

/** Milliseconds that the ranks may take to open the model: they may have to pack its weights first. */
const OPEN_LIMIT_MS = 900_000;

/**
 * The executor of rank 0. Each of its calls goes to all ranks; each of them runs its part:
 *
 *   rank 0       step: bytes of the call, ring | part of each op | exchange | ... | logits of all ranks | sampling
 *   rank 1 ...   wait for the ring             | part of each op | exchange | ... | answer
 *
 * With several stages as many steps can be begun as there are stages. All ranks run all calls in the order of the rings, so that
 * memory is in each of them what it is with one:
 *
 *   rank 0, stage 0   begin A, begin B: | A | B | finish A: logits, sampling | copies, begin C: | copies | C |
 *   rank 1, stage 1                         | A | B                                             | copies     | C
 *
 * No caller waits for the answers of steps and copies: a rank that cannot follow ends the group. Other calls
 * have an answer, and all begun steps are computed first: a rank that waits for rank 0 to take its logits
 * could not give it.
 *
 * Samples, drafts, guides and everything else that decides run on rank 0 alone.
 */
export class RankedExecutor implements Executor {
  readonly name = 'native';
  readonly instructionSet: string;
  readonly options: Readonly<ExecutorOptions>;
  readonly vocabSize: number;
  readonly promptRowWidth: number;
  readonly turnsByGrid: boolean;
  readonly pictureRule: PictureRule;
  readonly adapters?: AdapterSlots;
  readonly maxBegun: number;
  readonly minBegun: number;
  readonly beginForward?: (batch: PackedBatch) => void;
  readonly finishForward?: () => Float32Array;
  readonly #own: NativeExecutor;
  readonly #hasStates: boolean;
  readonly #group: GroupHandle;
  readonly #size: number;
  readonly #calls: CallWriter;
  /** Memory that each other rank takes. */
  readonly #others: ExecutorMemory[];
  /** Begun steps, oldest first. */
  #begun: ('step' | 'forward')[] = [];
  #isClosed = false;

  /** Opens the part of this rank while the others open theirs. @throws what a rank says that cannot open it */
  constructor(
    engine: LoadableEngine,
    options: ExecutorOptions & { seat: RankSeat & { group: GroupHandle } },
  ) {
    const { seat, heartbeat: _, ...shared } = options;
    this.#group = seat.group;
    this.#hasStates = engine.plan.states !== undefined;
    this.#size = sizeOf(seat.shape);
    this.#calls = new CallWriter(this.#group.call, this.#group, {
      awaitAll: () => {
        this.#completeBegun();
        this.#awaitAnswers();
      },
      handOver: () => {
        this.#group.ring();
        this.#awaitAnswers();
      },
    });
    const instructionSet = NativeExecutor.instructionSetOf(options);
    this.#calls.write(
      CALL_KINDS.open,
      openArrays({ options: { ...shared, instructionSet }, model: modelName(engine) }),
    );
    this.#lostIfGone(() => this.#group.ring());
    this.#own = new NativeExecutor(engine, options);
    this.#awaitAnswers(OPEN_LIMIT_MS);
    this.#others = Array.from({ length: this.#size - 1 }, (_, other) =>
      NativeExecutor.measure(engine, { ...shared, seat: { shape: seat.shape, rank: other + 1 } }),
    );
    this.instructionSet = instructionSet;
    this.options = this.#own.options;
    this.vocabSize = engine.plan.vocabSize;
    this.promptRowWidth = this.#own.promptRowWidth;
    this.pictureRule = this.#own.pictureRule;
    this.turnsByGrid = this.#own.turnsByGrid;
    this.maxBegun = seat.shape.pipelineParallelSize;
    this.minBegun = leastMicroBatch(engine, seat.shape);
    if (this.maxBegun > 1) {
      this.beginForward = (batch) =>
        this.#begin('forward', batch, () => this.#own.beginForwardOfStage(batch));
      this.finishForward = () => this.#finish('forward', () => this.#own.finishForwardOfStage());
    }
    if (this.#own.adapters !== undefined) this.adapters = this.#slotsOf(engine, this.#own.adapters);
  }

  step(batch: PackedBatch, sampling: SamplingBatch, output: SamplingOutput): void {
    this.#run(batch, () => this.#own.step(batch, sampling, output));
  }

  begin(batch: PackedBatch, sampling: SamplingBatch, output: SamplingOutput): void {
    this.#begin('step', batch, () => this.#own.begin(batch, sampling, output));
  }

  finish(): void {
    this.#finish('step', () => this.#own.finish());
  }

  forward(batch: PackedBatch): Float32Array {
    return this.#run(batch, () => this.#own.forward(batch));
  }

  sample(sampling: SamplingBatch, output: SamplingOutput): void {
    this.#own.sample(sampling, output);
  }

  copyBlocks(source: Int32Array, target: Int32Array): void {
    this.#requireStill();
    this.#lostIfGone(() => this.#own.copyBlocks(source, target));
    this.#calls.write(CALL_KINDS.copyBlocks, [source, target]);
    this.#lostIfGone(() => this.#group.ring());
  }

  areFinite(blocks: Int32Array): boolean {
    this.#requireIdle();
    const own = this.#own.areFinite(blocks);
    return this.#tell(CALL_KINDS.areFinite, [blocks]) === this.#size - 1 && own;
  }

  copyStates(source: Int32Array, target: Int32Array): void {
    this.#requireStill();
    this.#lostIfGone(() => this.#own.copyStates(source, target));
    this.#calls.write(CALL_KINDS.copyStates, [source, target]);
    this.#lostIfGone(() => this.#group.ring());
  }

  areStatesFinite(slots: Int32Array): boolean {
    this.#requireIdle();
    const own = this.#own.areStatesFinite(slots);
    return this.#tell(CALL_KINDS.areStatesFinite, [slots]) === this.#size - 1 && own;
  }

  /** Memory of all ranks together. */
  memory(): ExecutorMemory {
    const own = this.#own.memory();
    return this.#others.reduce(
      (sum, one) => ({
        weightBytes: sum.weightBytes + one.weightBytes,
        kvCacheBytes: sum.kvCacheBytes + one.kvCacheBytes,
        secondaryKvCacheBytes: sum.secondaryKvCacheBytes + one.secondaryKvCacheBytes,
        workspaceBytes: sum.workspaceBytes + one.workspaceBytes,
      }),
      own,
    );
  }

  waitedMs(): number {
    return this.#own.waitedMs();
  }

  /** Ends the other ranks too. */
  close(): void {
    if (this.#isClosed) return;
    if (this.#begun.length > 0) {
      throw new Error(
        'The executor cannot be closed while a begun step is running; finish() must come first.',
      );
    }
    this.#isClosed = true;
    if (this.#group.abortReason === null) {
      this.#calls.write(CALL_KINDS.end, []);
      this.#group.ring();
    }
    this.#own.close();
    this.#group.close();
  }

  /** Writes a forward, which the addon rings for once it has checked the batch, and runs it. */
  #run<T>(batch: PackedBatch, run: () => T): T {
    this.#requireIdle();
    this.#calls.write(CALL_KINDS.forward, batchArrays(batch, this.#hasStates));
    return this.#lostIfGone(run);
  }

  #begin(kind: 'step' | 'forward', batch: PackedBatch, begin: () => void): void {
    if (this.#begun.length === this.maxBegun || this.#isClosed) this.#requireIdle();
    this.#calls.write(CALL_KINDS.forward, batchArrays(batch, this.#hasStates));
    this.#lostIfGone(begin);
    this.#begun.push(kind);
  }

  /** Ends the oldest begun step, whether or not it throws, unless it is of another kind, which the addon refuses. */
  #finish<T>(kind: 'step' | 'forward', finish: () => T): T {
    if (this.#begun[0] === kind) this.#begun.shift();
    return this.#lostIfGone(finish);
  }

  #completeBegun(): void {
    if (this.#begun.length > 0) this.#lostIfGone(() => this.#own.completeBegun());
  }

  #tell(kind: CallKind, arrays: readonly CallArray[]): number {
    this.#completeBegun();
    this.#calls.write(kind, arrays);
    this.#lostIfGone(() => this.#group.ring());
    return this.#awaitAnswers();
  }

  #awaitAnswers(limitMs?: number): number {
    return this.#lostIfGone(() => this.#group.awaitAnswers(limitMs));
  }

  #lostIfGone<T>(run: () => T): T {
    try {
      return run();
    } catch (error) {
      if (codeOf(error) !== RANKS_LOST) throw error;
      this.#begun = [];
      this.#group.abort(messageOf(error));
      throw new ExecutorLostError(this.#group.abortReason ?? messageOf(error));
    }
  }

  #requireIdle(): void {
    if (this.#isClosed) throw new Error('The executor is closed.');
    if (this.#begun.length > 0) throw new Error('A begun step is running; finish() must come first.');
  }

  /** Throws where memory may not change: several begun steps of stages are in order with the changes. */
  #requireStill(): void {
    if (this.maxBegun === 1 || this.#isClosed) this.#requireIdle();
  }

  #slotsOf({ plan }: LoadableEngine, { maxSlots, maxRank }: AdapterSlots): AdapterSlots {
    const products = new AdapterProducts(plan);
    return {
      maxSlots,
      maxRank,
      put: (slot, weights) => {
        this.#requireStill();
        const parts = products.partsOf(weights);
        this.#lostIfGone(() => this.#own.putAdapter(slot, parts));
        this.#tell(CALL_KINDS.putAdapter, adapterArrays(slot, parts));
      },
      clear: (slot) => {
        this.#requireStill();
        this.#lostIfGone(() => this.#own.clearAdapter(slot));
        this.#tell(CALL_KINDS.clearAdapter, [Int32Array.of(slot)]);
      },
    };
  }
}
