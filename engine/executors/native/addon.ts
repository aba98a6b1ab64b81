import type { InstructionSet } from '../../../callbacks/gpt-manager-options.js';
import type { ExecutorMemory } from '../../../callbacks/worker-messages.js';
import type { KvDtype } from '../../../kvcache/cache-shape.js';
import type { NetworkPlan } from '../../../network/plan.js';
import type { ConvertJob } from '../../directory/convert-job.js';
import type { LoadableTensor } from '../../directory/source-tensors.js';
import type { PackedBatch } from '../../packed-call/packed-batch.js';
import type { SamplingBatch, SamplingOutput } from '../../packed-call/sampling-batch.js';
import type { GroupHandle, GroupOptions } from '../../sharding/group.js';
import type { RankPlan } from '../../sharding/rank-plan.js';
import type { ExpertBytes } from '../memory-budget.js';
import type { ThreadPlaces } from '../thread-places.js';
import type { AdapterPart } from './adapter-parts.js';

export interface NativeExecutorOptions {
  /** A network, or the part of it that a rank runs. */
  plan: NetworkPlan | RankPlan;
  weightsFile: string;
  /** Those with jobs lie in the model's file, the others in weightsFile. */
  tensors: LoadableTensor[];
  /** File of packed weights. Mapped if it exists and matches; otherwise written aside, renamed, then mapped. */
  packedFile: string;
  /** Memory in the place of weightsFile. Given: matrices are read where the model's file has them, and nothing is packed. */
  held?: Uint8Array;
  /** Experts are read from their file as rows go to them, and not at the start. Default false. */
  expertsFromDisk?: boolean;
  instructionSet: InstructionSet;
  threads: number;
  maxNumTokens: number;
  maxNumSequences: number;
  maxLogitRows: number;
  maxSeqLen: number;
  numBlocks: number;
  /** Slots for the states of sequences; needed with a plan that has states. */
  numStateSlots?: number;
  /** See ExecutorOptions. */
  numDraftSlots?: number;
  stateDraftRows?: number;
  tokensPerBlock: number;
  kvDtype: KvDtype;
  /** Tokens attended to; 0: no window. */
  maxAttentionWindow: number;
  sinkTokenLength: number;
  /** Slots for LoRA adapters; 0: none. */
  maxAdapters: number;
  maxLoraRank: number;
  /** Number of processors that the threads of all executors computing at the same time may take together. */
  processors: number;
  /** Share of the processors relative to other environments: see ExecutorOptions. */
  computeWeight?: number;
  heartbeat?: Int32Array;
  /** Processors of the threads; absent: they run where the system puts them. */
  places?: ThreadPlaces;
  /** Memory that the ranks share; needed with the plan of a rank, except for measuring. */
  group?: GroupHandle;
}

/** The addon has one KV pool; which of its blocks are secondary is decided outside. Experts are a part of the weights. */
export type NativeMemory = Omit<ExecutorMemory, 'secondaryKvCacheBytes'> & { experts: ExpertBytes };

/** Times of all executors of an environment (a worker), summed. */
export interface NativeTurns {
  /** Seconds spent computing, and waiting while executors of other environments computed. */
  heldSeconds: number;
  waitedSeconds: number;
  /**
   * Number of steps that were interrupted between two ops for an environment that had fallen further behind.
   */
  partings: number;
}

export interface NativeExecutorHandle {
  step(batch: PackedBatch, sampling: SamplingBatch, output: SamplingOutput): void;
  begin(batch: PackedBatch, sampling: SamplingBatch, output: SamplingOutput): void;
  finish(): void;
  /** Of rank 0 of several stages alone, which begins several steps before it finishes the oldest. */
  beginForward(batch: PackedBatch): void;
  finishForward(): Float32Array;
  /** Waits for the results of all begun steps, which stay begun. */
  complete(): void;
  forward(batch: PackedBatch): Float32Array;
  /** The forward of a rank that does not get the network's output. */
  follow(batch: PackedBatch): void;
  sample(sampling: SamplingBatch, output: SamplingOutput): void;
  copyBlocks(source: Int32Array, target: Int32Array): void;
  copyStates(source: Int32Array, target: Int32Array): void;
  areStatesFinite(slots: Int32Array): boolean;
  areFinite(blocks: Int32Array): boolean;
  bytesPerBlock(): number;
  readBlocks(blocks: Int32Array, target: Uint8Array): void;
  writeBlocks(blocks: Int32Array, source: Uint8Array): void;
  bytesPerStateSlot(): number;
  readStates(slots: Int32Array, target: Uint8Array): void;
  writeStates(slots: Int32Array, source: Uint8Array): void;
  putAdapter(slot: number, parts: readonly AdapterPart[]): void;
  clearAdapter(slot: number): void;
  memory(): NativeMemory;
  /** Bytes of experts that were not in memory when rows went to them; and bytes a second of the disk, 0 where nothing was read at the start. */
  expertReads(): { bytes: number; bytesPerSecond: number };
  /** CRC-32 of whole tensors in the model's file that were packed for this executor; none where it mapped a packed file. */
  packedChecksums(): { tensor: number; checksum: number }[];
  /** Seconds per kind of op since the last call; counted only while `on` is true. For benchmarks. */
  profile(on: boolean): Record<string, number>;
  turns(): NativeTurns;
  close(): void;
}

export interface SimulatedTurns {
  processors: number;
  /** Length of the simulation. */
  seconds: number;
  /** Engines that each run steps of `ops` ops, with a gap between two steps. */
  engines: {
    threads: number;
    weight: number;
    opSeconds: number;
    opsPerStep: number;
    gapSeconds: number;
    startSeconds: number;
  }[];
}

/** Times of one engine during the simulation. */
export interface SimulatedTurnsResult {
  heldSeconds: number;
  waitedSeconds: number;
  longestWaitSeconds: number;
  steps: number;
  partings: number;
}

/** Sequences of an iteration for SharedPrefixes: executor/shared_prefixes.h. */
export interface PrefixTables {
  tokensPerBlock: number;
  /** Rows of a group, at most. */
  rows: number;
  /** Rows of a group times the splits of its longest sequence, at most. */
  splitRows: number;
  maxBlocks: number;
  /** [sequences][maxBlocks] */
  blockTables: Int32Array;
  /** [sequences] tokens, those of the iteration included. */
  contextLength: Int32Array;
  /** [sequences + 1] */
  queryStart: Int32Array;
}

/** Exports of the compiled addon. */
export interface NativeAddon {
  /** Number of this interface: see ADDON_ABI. */
  readonly abi: number;
  /** Instruction sets that this processor runs, from the slowest to the fastest. */
  supportedInstructionSets(): InstructionSet[];
  /**
   * Converts into `target`, an existing file of its final size. Checks every bound; throws an error naming file and tensor
   * bounds.
   */
  convert(target: string, jobs: ConvertJob[], threads: number): void;
  /** CRC-32 of each range of a file. Throws an error that names the file. */
  checksums(file: string, ranges: { offset: number; byteLength: number }[], threads: number): Uint32Array;
  /**
   * CRC-32 of the rows that the jobs make, one after the other. They read one file and have one number of
   * columns and one target type; their targetOffset does not count. Throws an error that names the file.
   */
  rowsChecksum(jobs: ConvertJob[], threads: number): number;
  createExecutor(options: NativeExecutorOptions): NativeExecutorHandle;
  /** Makes the file of a group's memory, which must not exist. */
  createGroup(path: string, size: number): void;
  /** Opens it as one rank. */
  readonly RankGroup: new (
    options: GroupOptions,
  ) => GroupHandle;
  /** Result that memory() of an executor with these options would have, without taking any memory. */
  measureExecutor(options: NativeExecutorOptions): NativeMemory;
  /** The sequences that attend to the same cached blocks, for the test of who they are. */
  sharedPrefixes(tables: PrefixTables): { tokens: number; members: number[] }[];
  /** Simulates engines that take turns to compute, on a clock of its own, for the test of fairness. */
  simulateTurns(options: SimulatedTurns): SimulatedTurnsResult[];
  /** The sampler's random generator, for its known-answer test: counter [4], key [2] -> words [4]. */
  philox4x32(counter: Uint32Array, key: Uint32Array): Uint32Array;
}
