import { SkeinError } from '../base/skein-error.js';
import { isRequestId, REQUEST_ID } from './given-values.js';

/** `duplicate`: a request with this id is in progress. `invalid`: no 64-bit unsigned number. */
export type RequestIdProblem = 'duplicate' | 'invalid';

/**
 * A request of getInferenceRequests was refused for its id. No response can report this: a response with the id of
 * another request would end that one for the host, and one with an invalid id belongs to no request.
 */
export class RequestIdError extends SkeinError {
  override name = 'RequestIdError';
  override readonly code = 'SKEIN_REQUEST_ID';
  readonly reason: RequestIdProblem;
  /** The refused id, of any size; null if it was no bigint. */
  readonly requestId: bigint | null;

  constructor(message: string, reason: RequestIdProblem, requestId: bigint | null) {
    super(message);
    this.reason = reason;
    this.requestId = requestId;
  }

  static duplicate(requestId: bigint): RequestIdError {
    const message = `A request with the id ${requestId} is being processed; the later one is refused, and the first one continues.`;
    return new RequestIdError(message, 'duplicate', requestId);
  }
}

/** Why a request is refused for its id, given those in progress; null: it is not. */
export function refusedId(
  requestId: unknown,
  inProgress: { has(requestId: bigint): boolean },
): RequestIdError | null {
  return inProgress.has(requestId as bigint)
    ? RequestIdError.duplicate(requestId as bigint)
    : invalidIdError(requestId);
}

/** Error for an id that is no 64-bit unsigned number; null for a valid id. */
export function invalidIdError(requestId: unknown): RequestIdError | null {
  if (isRequestId(requestId)) return null;
  const found = typeof requestId === 'object' ? 'an object' : foundText(requestId);
  const message = `requestId is ${found}; it must be ${REQUEST_ID}.`;
  return new RequestIdError(message, 'invalid', typeof requestId === 'bigint' ? requestId : null);
}

/** Longest text of a wrong id in a message. */
const MAX_FOUND_CHARS = 100;

/** The id as text. A bigint can have millions of digits, whose decimal form takes seconds: it is cut by its bits. */
function foundText(requestId: unknown): string {
  if (typeof requestId === 'bigint' && BigInt.asIntN(256, requestId) !== requestId) {
    return `a bigint of more than 256 bits`;
  }
  const text = String(requestId);
  return text.length <= MAX_FOUND_CHARS ? text : `${text.slice(0, MAX_FOUND_CHARS)}…`;
}
