import type { Completion, GenerateOptions } from './answers.js';

/** Options of many answers. */
export interface ManyOptions {
  /** Most requests that are in the engine, or wait for it, at once. Default 64. */
  maxInFlight?: number | undefined;
  /** Called whenever a request has ended, with the number of those and of all. */
  onProgress?: ((done: number, all: number) => void) | undefined;
  /** Signal whose abort ends all requests: the call then rejects with its reason. */
  signal?: AbortSignal | undefined;
}

/** How one of many requests ended. */
export type ManyResult = { completion: Completion; error: null } | { completion: null; error: Error };

const MAX_IN_FLIGHT = 64;

/**
 * Completes many requests, some at once. A request that fails has its error in its place, and the others
 * continue.
 * @throws the reason of the signal; what `onProgress` throws
 */
export async function completeMany(
  complete: (options: GenerateOptions) => Promise<Completion>,
  requests: readonly GenerateOptions[],
  { maxInFlight = MAX_IN_FLIGHT, onProgress, signal }: ManyOptions,
): Promise<ManyResult[]> {
  const left = new AbortController();
  const ended = signal === undefined ? left.signal : AbortSignal.any([signal, left.signal]);
  const results: ManyResult[] = new Array(requests.length);
  // All lines share one iterator, each takes the next request when it has ended one.
  const waiting = requests.entries();
  let done = 0;
  const line = async () => {
    for (const [index, request] of waiting) {
      ended.throwIfAborted();
      results[index] = await resultOf(complete, request, ended);
      ended.throwIfAborted();
      onProgress?.(++done, requests.length);
    }
  };
  try {
    await Promise.all(Array.from({ length: Math.min(maxInFlight, requests.length) }, line));
  } finally {
    left.abort();
  }
  return results;
}

async function resultOf(
  complete: (options: GenerateOptions) => Promise<Completion>,
  request: GenerateOptions,
  ended: AbortSignal,
): Promise<ManyResult> {
  try {
    const own = request?.signal;
    const signal = own === undefined ? ended : AbortSignal.any([own, ended]);
    return { completion: await complete({ ...request, signal }), error: null };
  } catch (error) {
    return { completion: null, error: error instanceof Error ? error : new Error(String(error)) };
  }
}
