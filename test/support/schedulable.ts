import type { SchedulableRequest } from '../../scheduler/tokens/types.js';

/** A request in its context phase, frozen; not started unless contextPosition says so. */
export function contextRequest(
  requestId: bigint,
  promptLength: number,
  maxNewTokens: number,
  more: Partial<SchedulableRequest> = {},
): SchedulableRequest {
  return Object.freeze({
    requestId,
    phase: 'context',
    promptLength,
    generatedLength: 0,
    maxNewTokens,
    contextPosition: 0,
    blocksHeld: 0,
    beamWidth: 1,
    draftLength: 0,
    ...more,
  });
}

/** A generating request, frozen. */
export function generationRequest(
  requestId: bigint,
  promptLength: number,
  maxNewTokens: number,
  generatedLength: number,
  more: Partial<SchedulableRequest> = {},
): SchedulableRequest {
  return contextRequest(requestId, promptLength, maxNewTokens, {
    phase: 'generation',
    generatedLength,
    contextPosition: promptLength,
    ...more,
  });
}

export function ids(requests: readonly SchedulableRequest[]): bigint[] {
  return requests.map((request) => request.requestId);
}
