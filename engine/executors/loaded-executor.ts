import type { ModelType, OptionalParams } from '../../callbacks/gpt-manager-options.js';
import type { SeatData } from '../../callbacks/ranks-options.js';
import type { StateSizes } from '../../kvcache/kv-cache-options.js';
import type { RopeTable } from '../batch/rope-table.js';
import type { EngineLimits } from '../options/engine-limits.js';
import type { LoadedAdapters } from '../peft/page-sizes.js';
import type { Executor } from './executor.js';

/** A draft model that is ready to run. */
export interface LoadedDraft {
  executor: Executor;
  rope: RopeTable;
  /** Guess for the cost of a round, as a share of a step of the model, until it was measured. */
  costShare: number;
  /** Of a model's own head: the width of the rows that it reads, and most that are kept of a sequence. Absent: it is a draft model. */
  head?: { width: number; most: number };
}

/** The function that a module given as `executorModule` exports under the name `loadExecutor`. */
export type LoadExecutor = (request: LoadRequest) => LoadedExecutor | Promise<LoadedExecutor>;

export interface LoadRequest {
  enginePath: string;
  params: OptionalParams;
  /** V1 needs room for padding: EngineLimits.padding has the size. */
  modelType: ModelType;
  /** Default 1. The executor needs room for as many sequences of each request: EngineLimits.microBatch.maxSequences. */
  maxBeamWidth?: number;
  /** See ExecutorOptions.heartbeat. */
  heartbeat?: Int32Array;
  /** The engine is rank 0 of a group; absent: it is alone. */
  seat?: SeatData;
}

/** An executor ready to run, with the data that the loop needs about it. */
export interface LoadedExecutor {
  executor: Executor;
  limits: EngineLimits;
  rope: RopeTable;
  /** Tokens that end a generation; the first is the usual end_id. */
  endTokenIds: number[];
  padTokenId: number | null;
  /** Slots for the states of sequences and for snapshots of them, and most rows of a draft; absent: the model has no states. */
  states?: Required<Pick<StateSizes, 'numSlots' | 'numSnapshots' | 'draftRows'>>;
  /** Reason why another executor than the fastest runs, and how to get that one; absent or null: the fastest runs. */
  executorFallback?: string | null;
  /** Caches for LoRA adapters, if OptionalParams.peftCacheManagerConfig is given; absent: requests can have none. */
  adapters?: LoadedAdapters;
  /** The draft model, if OptionalParams.draftEnginePath is given, or the model's head, where OptionalParams.speculate says so. */
  draft?: LoadedDraft;
  /** See engineDigest; absent: it is that of the engine's directory. */
  digest?: string;
}
