import type { TurnChanges } from '../../callbacks/worker-messages.js';
import type { LlmRequest } from '../request/llm-request.js';
import type { Chunks } from './iteration.js';

/**
 * Who waits and who runs, as of the iteration that is about to start: a request waits until it runs for the first time, and while it is paused.
 *
 *   waits --first chunk--> has begun --pause--> waits --resume--> has begun
 *
 * @returns the changes, each once; null: there are none
 */
export function takeTurns(chunks: Chunks, paused: readonly LlmRequest[]): TurnChanges | null {
  const began = chunks.filter(({ request }) => request.isWaiting).map(({ request }) => request);
  const again = paused.filter((request) => !request.isWaiting);
  if (began.length + again.length === 0) return null;
  for (const request of began) request.isWaiting = false;
  for (const request of again) request.isWaiting = true;
  const idsOf = (requests: readonly LlmRequest[]) => requests.map(({ requestId }) => requestId);
  return { began: idsOf(began), paused: idsOf(again) };
}
