import { SkeinError } from '../../base/skein-error.js';
import type { InstructionSet, PinThreads } from '../../callbacks/gpt-manager-options.js';
import type { ExecutorMemory, ExpertReading } from '../../callbacks/worker-messages.js';
import type { KvDtype } from '../../kvcache/cache-shape.js';
import type { AdapterWeights } from '../../models/adapters/adapter-weights.js';
import type { PictureRule } from '../../network/attention-mask.js';
import type { PackedBatch } from '../packed-call/packed-batch.js';
import type { SamplingBatch, SamplingOutput } from '../packed-call/sampling-batch.js';
import type { RankSeat } from '../sharding/group.js';

export interface ExecutorOptions {
  /** Number of threads that compute, the calling one included. */
  threads: number;
  /** Most tokens of one PackedBatch (T). */
  maxNumTokens: number;
  /** Most sequences of one PackedBatch (B). */
  maxNumSequences: number;
  /** Most rows of logits of one step (R). */
  maxLogitRows: number;
  /** Most tokens of a sequence, prompt and generated ones together. */
  maxSeqLen: number;
  numBlocks: number;
  /**
   * Number of blocks numbered after the numBlocks ones, for copyBlocks only: no table names them. Default 0.
   */
  numSecondaryBlocks?: number;
  /** Slots for the states of sequences, of a network that has states; default 0. */
  numStateSlots?: number;
  /** The first of these slots, whose sequences may have drafts, and most rows of such a draft; default 0. */
  numDraftSlots?: number;
  stateDraftRows?: number;
  tokensPerBlock: number;
  kvDtype: KvDtype;
  /**
   * Tokens that a token attends to, and how many of these are the sequence's first ones: see kvcache/attention-window.ts.
   * Absent: all.
   */
  maxAttentionWindow?: number;
  sinkTokenLength?: number;
  /**
   * Weight of the engine among others of the process: with twice the weight an engine gets twice the time.
   * Default 1.
   */
  computeWeight?: number;
  /** Whether threads stay on cores of their own: see OptionalParams.pinThreads. Default off. */
  pinThreads?: PinThreads;
  /** A heartbeat whose first element grows while a call waits for other engines of the process. */
  heartbeat?: Int32Array;
  /** Default: the best that this processor has, or the one that SKEIN_ISA names. */
  instructionSet?: InstructionSet;
  /** Share of the experts' bytes that memory has room for: below 1 they are read from the disk as they are needed. Default 1. */
  expertFraction?: number;
  /** Slots for LoRA adapters; default 0: none. */
  maxAdapters?: number;
  /** Greatest rank of an adapter's module-layers; needed with maxAdapters. */
  maxLoraRank?: number;
  /** The executor is one rank of a group, which run the network together; absent: it runs it alone. */
  seat?: RankSeat;
}

/** What an executor reads of experts that memory does not hold. */
export interface ExpertReads extends ExpertReading {
  /** Bytes of experts that were not in memory when rows went to them, since the start. */
  readBytes: number;
}

/** Places for LoRA adapters in an executor; a PackedBatch names them by number, from 0. All are empty at first. */
export interface AdapterSlots {
  readonly maxSlots: number;
  /** Greatest rank of a module-layer. */
  readonly maxRank: number;
  /** Copies an adapter into a slot, in the place of what it held. Refused while a begun step runs. */
  put(slot: number, weights: AdapterWeights): void;
  /** Empties a slot. Refused while a begun step runs. */
  clear(slot: number): void;
}

/**
 * The content of KV blocks, for other executors of the same network, KV type and tokens per block, on the same
 * instruction set: what is in a block after `write` is, to the bit, what was in the block that was read. Refused while
 * a begun step runs.
 *
 *   bytes   | block 0: layer 0 | layer 1 | ... | block 1: layer 0 | ...
 */
export interface BlockAccess {
  /** Bytes of a block in all layers. */
  readonly bytesPerBlock: number;
  /** Copies blocks, secondary ones included, into `target`, which has bytesPerBlock for each of them. */
  readBlocks(blocks: Int32Array, target: Uint8Array): void;
  writeBlocks(blocks: Int32Array, source: Uint8Array): void;
  /** Absent: the network has no states. */
  readonly states?: StateAccess;
}

/** The content of slots for states, one after the other, under the rules of BlockAccess. */
export interface StateAccess {
  /** Bytes of the states of all layers. */
  readonly bytesPerSlot: number;
  readStates(slots: Int32Array, target: Uint8Array): void;
  writeStates(slots: Int32Array, source: Uint8Array): void;
}

/**
 * Runs a network over a packed batch. The loop knows no more of the machine than this. All memory is taken when the
 * executor is made; nothing allocates in `step`.
 */
export interface Executor {
  readonly name: 'native' | 'tensorflow' | 'wasm' | 'fake';
  readonly instructionSet: string;
  readonly options: Readonly<ExecutorOptions>;
  readonly vocabSize: number;
  /** Width of the rows that a prompt may bring for its tokens. */
  readonly promptRowWidth: number;
  /** RoPE turns by a token's place in the grid of a picture too. */
  readonly turnsByGrid: boolean;
  readonly pictureRule: PictureRule;
  /** Absent: this executor takes no LoRA adapters. */
  readonly adapters?: AdapterSlots;
  /** Absent: the content of its blocks cannot be had. */
  readonly blockAccess?: BlockAccess;
  /** Forward and sampling fused: one call an iteration. Fills `output` for the batch's sampled rows. */
  step(batch: PackedBatch, sampling: SamplingBatch, output: SamplingOutput): void;
  /**
   * Begins a `step` and returns at once: a thread of the executor's own runs it while the caller goes on. An executor
   * without such a thread computes in `finish`; the rules are the same.
   *
   *   begin(A)  caller packs B   finish()  begin(B)  caller reads A's output   finish() ...
   *             |------- A runs -------|          |-------------- B runs ----------|
   *
   * Until `finish` the arrays of all three belong to the executor: the caller neither reads nor writes them, and keeps
   * their buffers. A batch that is not valid is refused here. Until `finish`, every other call except `memory` is
   * refused, also a second `begin`, and `close`.
   */
  begin(batch: PackedBatch, sampling: SamplingBatch, output: SamplingOutput): void;
  /** Waits for the begun step to end and throws any error of it. Refused if no step was begun. */
  finish(): void;
  /**
   * Most steps that may be begun before one is finished; absent: 1. Where there are more, each stage of the executor runs another
   * one, and `finish` ends the oldest. What changes memory (copies of blocks, adapters) may then come between two begins, and takes
   * effect between these steps. Everything else is refused until all are finished, except for what follows finishForward.
   */
  readonly maxBegun?: number;
  /**
   * Fewest sequences for which beginning a step while others run is worthwhile, where maxBegun is more than
   * 1; absent: 1.
   */
  readonly minBegun?: number;
  /** Begins a step like `begin`, of which only the forward runs; absent: only whole steps can be begun. */
  beginForward?(batch: PackedBatch): void;
  /**
   * Waits for the oldest begun step, which beginForward began. The result is that of `forward`, and `sample` may follow though other
   * steps are begun. It is valid until the next call except `sample`.
   */
  finishForward?(): Float32Array;
  /**
   * Runs the forward only; the view [numLogitRows x the plan's outputWidth] is valid and writable until the next call.
   */
  forward(batch: PackedBatch): Float32Array;
  /** Samples from the logits of the last `forward`. */
  sample(sampling: SamplingBatch, output: SamplingOutput): void;
  /**
   * Copies whole KV blocks source[i] -> target[i] in every layer, with the effect of copying one after the other: a
   * block that is first copied from and then copied to has been read before it is written. Secondary blocks included.
   */
  copyBlocks(source: Int32Array, target: Int32Array): void;
  /**
   * Copies the states of whole slots source[i] -> target[i], one after the other. Absent: this executor runs no network that has states.
   */
  copyStates?(source: Int32Array, target: Int32Array): void;
  /** True if all states in these slots are finite. Present where copyStates is. */
  areStatesFinite?(slots: Int32Array): boolean;
  /** True if all keys and values of these blocks are finite, in every layer. */
  areFinite(blocks: Int32Array): boolean;
  memory(): ExecutorMemory;
  /** Of a network whose experts are read from the disk: see ExpertReads. Absent, or null: memory holds all weights. */
  expertReads?(): ExpertReads | null;
  /** Milliseconds since the start that calls have waited for other engines of the process; absent: they never wait. */
  waitedMs?(): number;
  close(): void;
}

/**
 * The device that an executor computes on is gone, and with it weights and cache: every later call throws this error too. The
 * engine's worker ends with it; the next worker opens a new executor. The message is a sentence.
 */
export class ExecutorLostError extends SkeinError {
  override name = 'ExecutorLostError';
  override readonly code = 'SKEIN_EXECUTOR_LOST';
}
