import type { Admit, AnswerTally } from '../../../callbacks/infer/answer-tally.js';
import { InferError } from '../../../callbacks/infer/infer-error.js';
import type { InferTerms } from '../../../callbacks/infer/infer-types.js';
import type { Caller } from '../web/access/api-keys.js';
import { cacheSaltFor } from '../web/access/cache-salt.js';
import { ApiError } from '../web/errors.js';
import type { RequestMemory } from '../web/memory/request-memory.js';

interface Known {
  caller: Caller;
  requestId: string;
  /** Most milliseconds of an answer; null: no limit. */
  timeLimitMs: number | null;
  memory: RequestMemory;
  tally?: AnswerTally | undefined;
  admit?: Admit | undefined;
  room?: InferTerms['room'];
  stop?: AbortSignal;
  engine?: string | undefined;
  onBegun?: InferTerms['onBegun'];
}

/** Terms of a request that came by HTTP. */
export function inferTerms({
  caller,
  requestId,
  timeLimitMs,
  memory,
  tally,
  admit,
  room,
  stop,
  engine,
  onBegun,
}: Known): InferTerms {
  return {
    caller: caller.name,
    weight: caller.weight,
    label: requestId,
    timeLimitMs,
    cacheSalt: (own) => cacheSaltFor(caller, own),
    hold: (bytes) => holdIn(memory, bytes),
    keep: (bytes) => {
      const problem = memory.keep(bytes);
      if (problem !== null) throw new InferError(problem, 'unavailable');
    },
    letGo: (bytes) => memory.letGo(bytes),
    tally,
    admit: admit && ((cost, besides) => inInferWords(() => admit(cost, besides))),
    room: room ?? (() => null),
    stop,
    engine,
    onBegun,
  };
}

function holdIn(memory: RequestMemory, bytes: number): void {
  try {
    memory.addAnswer(bytes);
  } catch (error) {
    throw inferErrorOf(error);
  }
}

async function inInferWords<T>(run: () => Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    throw inferErrorOf(error);
  }
}

/** An InferError whose cause has the status: models throw only InferErrors. */
function inferErrorOf(error: unknown): unknown {
  return error instanceof ApiError ? new InferError(error.message, 'unavailable', { cause: error }) : error;
}
