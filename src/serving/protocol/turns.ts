import { setImmediate as nextTurnOfAll } from 'node:timers/promises';
import { asInferError } from '../infer-failure.js';

/**
 * Lets others have their turn.
 * @throws InferError where the client has left meanwhile: the rest is not awaited
 */
export async function nextTurn(signal?: AbortSignal): Promise<void> {
  await nextTurnOfAll();
  if (signal?.aborted === true) throw asInferError(signal.reason);
}
