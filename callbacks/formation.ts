/** What is in flight in the engine at the end of an iteration, in flat arrays, as it crosses from the worker. */
export interface EngineFormation {
  iteration: number;
  /** In the order of the schedulers. */
  requestIds: BigUint64Array;
  /** 0 queued, 1 context, 2 generation, 3 paused. */
  states: Uint8Array;
  /** For each request: see FormationRow from promptTokens on. */
  counts: Int32Array;
  /** See Formation.blocks. */
  blockRuns: Int32Array;
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
 */
export type FormationRow = [id: number, label: string, state: number, ageMs: number, ...counts: number[]];

/** What is in flight, for who watches. Version 1: fields may be added, and entries at the end of rows. */
export interface Formation {
  v: 1;
  /** Milliseconds since 1970. */
  timeMs: number;
  iteration: number;
  /** Requests in the engine in the order of the schedulers, then those of the queue, MAX_QUEUED_ROWS at most. */
  requests: FormationRow[];
  /** Requests that wait in the queue, listed or not. */
  queued: number;
  /** Those that ended since the formation before, MAX_ENDED of them at most: id, label and finish reason, or 'error'. */
  ended: [id: number, label: string, reason: string][];
  /** Runs of equal blocks in the order of the pool, [length, owner, length, owner, ...]; owner: row of `requests`, or -1 free, -2 cached, -3 shared. */
  blocks: { count: number; tokensPerBlock: number; runs: number[] };
}

export type FormationListener = (formation: Formation) => void;

export const MAX_QUEUED_ROWS = 256;
export const MAX_ENDED = 256;
