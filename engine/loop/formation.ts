import type { EngineFormation, FlightRecord } from '../../callbacks/formation.js';
import { runsOf } from '../../kvcache/block-owners.js';
import type { KvCacheManager } from '../../kvcache/kv-cache-manager.js';
import type { LlmRequest } from '../request/llm-request.js';

/** Numbers of a request in EngineFormation.counts, in this order. */
const COUNTS_PER_REQUEST = 10;

const QUEUED = 0;
const CONTEXT = 1;
const GENERATION = 2;
const PAUSED = 3;

/** All requests in flight, in the order of the schedulers, and the holder of each block. O(requests + blocks). */
export function formationOf(
  active: readonly LlmRequest[],
  kvCache: KvCacheManager,
  iteration: number,
  record: FlightRecord,
): EngineFormation {
  const rows = new Map(active.map(({ requestId }, row) => [requestId, row]));
  const counts = new Int32Array(active.length * COUNTS_PER_REQUEST);
  for (const [row, request] of active.entries()) {
    const generated = request.sequences.reduce((sum, { numGenerated }) => sum + numGenerated, 0);
    const { originalPromptLength, promptLength, contextPosition, blocksHeld, cachedTokens, numPauses } =
      request;
    const own = [
      originalPromptLength,
      promptLength,
      contextPosition,
      generated,
      request.spec.maxNewTokens,
      blocksHeld,
      cachedTokens,
      numPauses,
      sinceArrival(request, request.timing.firstScheduledMs),
      sinceArrival(request, request.timing.firstTokenMs),
    ];
    counts.set(own, row * COUNTS_PER_REQUEST);
  }
  return {
    iteration,
    requestIds: BigUint64Array.from(active, ({ requestId }) => requestId),
    states: Uint8Array.from(active, stateOf),
    counts,
    stateSlots: kvCache.stats().states,
    blockRuns: runsOf(kvCache.blockOwners((requestId) => rows.get(requestId) ?? -1)),
    record,
  };
}

/** Whole milliseconds from the request's arrival to `ms`; -1 for an event that has not happened. */
function sinceArrival({ timing: { arrivalMs } }: LlmRequest, ms: number): number {
  return Number.isNaN(ms) ? -1 : Math.max(0, Math.round(ms - arrivalMs));
}

function stateOf(request: LlmRequest): number {
  if (request.isWaiting && request.numPauses === 0) return QUEUED;
  if (request.phase === 'generation') return GENERATION;
  return request.isPaused ? PAUSED : CONTEXT;
}
