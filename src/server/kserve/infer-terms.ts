import { InferError } from '../../../callbacks/infer/infer-error.js';
import type { InferTerms } from '../../../callbacks/infer/infer-types.js';
import type { Caller } from '../api-keys.js';
import { cacheSaltFor } from '../cache-salt.js';
import { ApiError } from '../openai/errors.js';
import type { RequestMemory } from '../request-memory.js';

interface Known {
  caller: Caller;
  requestId: string;
  /** Most milliseconds of an answer; null: no limit. */
  timeLimitMs: number | null;
  memory: RequestMemory;
  room?: InferTerms['room'];
  stop?: AbortSignal;
}

/** Terms of a request that came by HTTP. */
export function inferTerms({ caller, requestId, timeLimitMs, memory, room, stop }: Known): InferTerms {
  return {
    caller: caller.name,
    weight: caller.weight,
    label: requestId,
    timeLimitMs,
    cacheSalt: (own) => cacheSaltFor(caller, own),
    hold: (bytes) => holdIn(memory, bytes),
    room: room ?? (() => null),
    stop,
  };
}

/** @throws InferError whose cause has the status: a model tells of InferErrors alone */
function holdIn(memory: RequestMemory, bytes: number): void {
  try {
    memory.addAnswer(bytes);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    throw new InferError(error.message, 'unavailable', { cause: error });
  }
}
