/**
 * What became of a request that was sent to a worker:
 *
 *   `taken`    it has it
 *   `full`     it has no room for it
 *   `nobody`   there is no such worker (any more)
 *   `silent`   no answer came in time: it may have it all the same
 *   `unsent`   it cannot be sent this way
 */
export type DirectAnswer = 'taken' | 'full' | 'nobody' | 'silent' | 'unsent';

/** What became of a model's requests, each time that one was offered. */
export interface ModelRouting {
  /** Requests that were sent to a worker, by its answer. */
  direct: Record<DirectAnswer, number>;
  /** Requests that went into the stream, also those that no worker had taken. */
  streamed: number;
  /** Of those that a worker has taken: with a beginning in its cache, without, and blocks of it. */
  cached: number;
  uncached: number;
  cachedBlocks: number;
}

/** A number of requests that went to an engine, and the weight that it has. */
export interface EngineShare {
  requests: number;
  /** null: requests are not shared by weights. */
  weight: number | null;
}
