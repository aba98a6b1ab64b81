import type { IterationStats } from './iteration-stats.js';

/** The requests in flight at the end of an iteration, in flat arrays, as the worker sends them. */
export interface EngineFormation {
  iteration: number;
  /** Ids of the requests, in the order of the schedulers. */
  requestIds: BigUint64Array;
  /** State of each request: 0 queued, 1 context, 2 generation, 3 paused. */
  states: Uint8Array;
  /** Numbers of each request, from promptTokens on as in FormationRow; times in whole milliseconds. */
  counts: Int32Array;
  /** See Formation.blocks. */
  blockRuns: Int32Array;
  /** See Formation.stateSlots; null: the model has no states. */
  stateSlots: StateSlotCounts | null;
  record: FlightRecord;
}

/** Events and totals of the engine since the previous formation. */
export interface FlightRecord {
  /** Time of the formation on the engine's clock: milliseconds since 1970. */
  nowMs: number;
  /** Steps, six numbers each: see Formation.steps; begin and end are times of the engine's clock. */
  steps: Float64Array;
  totals: FlightTotals;
  longestIterationMs: number;
  latency: LatencyQuantiles;
}

/** Totals since the engine was started. A new worker starts again at 0. */
export interface FlightTotals {
  iterations: number;
  iterationMs: number;
  executorMs: number;
  contextTokens: number;
  generatedTokens: number;
  /** Requests that ran, summed over iterations. Divided by `iterations`: the mean size of a batch. */
  scheduledRequests: number;
  completedRequests: number;
  pauses: number;
  /** V1 only: slots of a batch that ran for a request that had already ended. */
  emptyGenerationSlots: number;
}

/** Milliseconds for which a duration counts at most in Quantiles; at least for half as long. */
export const QUANTILES_MS = 20_000;

/** Quantiles of the latest 10 to 20 seconds, in milliseconds, exact to 2 %. */
export interface Quantiles {
  count: number;
  p50: number;
  p90: number;
  p99: number;
}

/** Latencies as the engine sees them; null where there was none. */
export interface LatencyQuantiles {
  /** Time from submission to the first token. */
  firstToken: Quantiles | null;
  /** Time between two tokens of a request; tokens that arrive together share the time since the one before. */
  interToken: Quantiles | null;
}

/**
 * A request in flight:
 *
 *   0 id             number in this engine, counting from 1
 *   1 label          the client's X-Request-Id; '' where there is none
 *   2 state          0 queued, 1 context, 2 generation, 3 paused
 *   3 ageMs          since it came
 *   4 promptTokens   as the client gave them
 *   5 contextTokens  to compute before it generates (on): the prompt, after a pause with what was generated
 *   6 contextDone    of these, those that are in the cache
 *   7 generated      tokens so far, of all its sequences
 *   8 maxNewTokens   of each sequence
 *   9 blocks         that it holds
 *  10 cachedTokens   of its prompt that were found in the cache
 *  11 pauses         above 0 in the states 1 and 2: it was resumed
 *  12 scheduledMs    since it came, when it first ran; -1: it has not
 *  13 firstTokenMs   since it came, when its first token was there; -1: it is not
 */
export type FormationRow = [id: number, label: string, state: number, ageMs: number, ...counts: number[]];

export type FormationAdapter = [id: number, name: string];

export type FormationEnd = [
  id: number,
  label: string,
  reason: string,
  endMs: number,
  ageMs: number,
  promptTokens: number,
  generated: number,
  cachedTokens: number,
];

export type FormationStep = [
  id: number,
  kind: number,
  beginMs: number,
  endMs: number,
  from: number,
  tokens: number,
];

/**
 * A snapshot of the requests in flight, for watchers. Version 1: fields may be added, and entries at the end of rows.
 */
export interface Formation {
  v: 1;
  /** Time of the snapshot, in milliseconds since 1970. */
  timeMs: number;
  iteration: number;
  /** Requests in the engine in the schedulers' order, then those in the queue, at most MAX_QUEUED_ROWS of them. */
  requests: FormationRow[];
  /** Requests of these that have a LoRA adapter, and its name; absent: none has. */
  adapters?: FormationAdapter[];
  /** Number of requests that wait in the queue, listed or not. */
  queued: number;
  /**
   * Requests that ended since the formation before, MAX_ENDED of them at most: id, label and finish reason, or 'error';
   * when, in milliseconds from timeMs (0 or below); then what a row has, as far as the host knows it.
   */
  ended: FormationEnd[];
  /**
   * Steps of requests since the formation before, the latest 512 of it: id; 0 for a chunk of its context, 1 for a
   * pause, 2 for the last chunk of a context, with which it generates; begin and end in milliseconds from timeMs (0 or
   * below); context tokens before, and those of the chunk.
   */
  steps: FormationStep[];
  totals: FlightTotals;
  /** The longest iteration since the formation before. */
  longestIterationMs: number;
  latency: LatencyQuantiles;
  /** Runs of equal blocks in the order of the pool, [length, owner, length, owner, ...]; owner: row of `requests`, or -1 free, -2 cached, -3 shared. */
  blocks: { count: number; tokensPerBlock: number; runs: number[] };
  /** Slots for the states of sequences and for snapshots of them, and what became of prompts; absent: the model has no states. */
  stateSlots?: StateSlotCounts;
}

/** As IterationStats.states has them. */
export type StateSlotCounts = NonNullable<IterationStats['states']>;

/** Receives a formation. */
export type FormationListener = (formation: Formation) => void;

export const MAX_QUEUED_ROWS = 256;
export const MAX_ENDED = 256;
