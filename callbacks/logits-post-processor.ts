/**
 * The operation stream that the logits belong to, as GPU engines have one. On the CPU nothing is queued: the logits are
 * complete when a post-processor is called, and what it writes takes effect at once. So `synchronize` returns at once;
 * it exists so that a post-processor written for both reads the same.
 */
export interface LogitsStream {
  synchronize(): void;
}

/**
 * Changes the logits of a request before its next token is chosen. Called between the forward and the sampling of an
 * iteration, each time that the request draws, in the engine's worker or, as a function given to the manager, in the
 * host's thread; synchronous.
 *
 *   logits           in the worker a view of the executor's own memory, in the host's thread shared memory: [beams x vocabSize], row b belongs to
 *                    tokensPerBeam[b]. Valid until the call returns. Write to it, or return another Float32Array of the
 *                    same length, which takes its place.
 *   tokensPerBeam    all tokens of each beam so far, the prompt first; copies
 *   clientId         the tensor client_id of the request, else null
 *
 * After a pause a position may be drawn again: the function is called again with the same tokens, so its result should
 * depend on its arguments only. A post-processor that throws, takes longer than its time limit, returns something else,
 * or leaves NaN, +infinity or nothing finite in a row ends its request with an error, and no other.
 */
export type LogitsPostProcessor = (
  requestId: bigint,
  logits: Float32Array,
  tokensPerBeam: readonly Int32Array[],
  stream: LogitsStream,
  clientId: bigint | null,
  // biome-ignore lint/suspicious/noConfusingVoidType: a function that only writes to the view returns nothing.
) => Float32Array | void;

/**
 * A post-processor for all requests of an iteration that ask for it, in one call: entry i of every list belongs to
 * request i. May return a list with an array for each request whose logits it replaces. A call that fails ends all
 * these requests.
 */
export type LogitsPostProcessorBatched = (
  requestIds: readonly bigint[],
  logits: readonly Float32Array[],
  tokensPerBeam: readonly (readonly Int32Array[])[],
  stream: LogitsStream,
  clientIds: readonly (bigint | null)[],
  // biome-ignore lint/suspicious/noConfusingVoidType: as above.
) => readonly (Float32Array | null | undefined)[] | void;

/** The name by which requests ask for the batched post-processor. */
export const BATCHED_POST_PROCESSOR = 'batched';

/** Post-processors by the names under which requests ask for them. */
export type LogitsPostProcessors = Readonly<Record<string, LogitsPostProcessor>>;

/**
 * Exports of the module given as optionalParams.logitsPostProcessorModule, which the worker imports. Requests name a
 * post-processor of the map, or any other function that the module exports.
 */
export interface LogitsPostProcessorModule {
  logitsPostProcessors?: LogitsPostProcessors;
  logitsPostProcessorBatched?: LogitsPostProcessorBatched;
  readonly [name: string]: unknown;
}
