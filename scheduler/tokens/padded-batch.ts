import type { MicroBatchLimits, SchedulableRequest, ScheduledChunk } from './types.js';

/** The micro-batch scheduler of V1: a batch that generates runs on whole; if there is none, the next one starts. */
export function schedulePaddedBatch<R extends SchedulableRequest>(
  requests: readonly R[],
  limits: Readonly<MicroBatchLimits>,
): ScheduledChunk<R>[] {
  const generating = requests.filter(({ phase }) => phase === 'generation');
  if (generating.length === 0) return startPaddedBatch(requests, limits);
  return generating.map((request) => ({ request, contextTokens: 0 }));
}

/**
 * Forms the batch that V1 starts: the first requests of the list whose contexts, each padded to the longest among them,
 * fit into one iteration, and their sequences into each of those that follow. The walk stops at the first request that
 * does not fit; no request overtakes it.
 *
 *   maxNumTokens 24, prompts 5, 8, 3, 2       ppppp...
 *                                             pppppppp      3 rows of 8 are 24 tokens; a fourth would be 32
 *                                             ppp.....
 */
function startPaddedBatch<R extends SchedulableRequest>(
  requests: readonly R[],
  { maxBatchSize, maxNumTokens, maxSequences = Number.POSITIVE_INFINITY }: Readonly<MicroBatchLimits>,
): ScheduledChunk<R>[] {
  const chunks: ScheduledChunk<R>[] = [];
  let longest = 0;
  let sequences = 0;
  for (const request of requests) {
    longest = Math.max(longest, request.promptLength);
    sequences += request.beamWidth;
    if (chunks.length === maxBatchSize || (chunks.length + 1) * longest > maxNumTokens) break;
    if (sequences > Math.min(maxSequences, maxNumTokens)) break;
    chunks.push({ request, contextTokens: request.promptLength });
  }
  return chunks;
}
