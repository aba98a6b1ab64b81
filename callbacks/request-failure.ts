import { type NamedText, worded } from '../base/named-text.js';
import { textOf } from '../base/skein-error.js';
import { ParameterError } from './sampling-params.js';

/**
 * What became of a request that has no answer:
 *
 *   invalid      a tensor or a value that no engine takes
 *   unsupported  what this engine, as it was built or started, cannot do
 *   tooLong      it needs more than the engine has, even with all of it to itself
 *   guide        what its answer has to look like cannot be followed
 *   duplicate    another request of the same id is being processed
 *   overloaded   there is no room for it now
 *   ended        the engine ends, and takes or keeps no more
 *   internal     the engine failed
 */
export type FailureKind =
  | 'invalid'
  | 'unsupported'
  | 'tooLong'
  | 'guide'
  | 'duplicate'
  | 'overloaded'
  | 'ended'
  | 'internal';

/** Why a request failed, as data: it crosses threads as it is, and is worded where somebody reads it. */
export interface RequestFailure {
  kind: FailureKind;
  /** The tensor, or what a TokenRequest calls it, that is at fault; null: none is. */
  field: string | null;
  text: NamedText;
}

const FAULTS: ReadonlySet<FailureKind> = new Set(['invalid', 'unsupported', 'tooLong', 'guide']);

/** The request itself is at fault: it would be refused again, and nothing of it ran. */
export function isRequestsFault(kind: FailureKind): boolean {
  return FAULTS.has(kind);
}

export function failure(kind: FailureKind, text: NamedText, field: string | null = null): RequestFailure {
  return { kind, field, text };
}

/** What was thrown while a request was read: a ParameterError is the request's fault, all else the engine's. */
export function failureOf(thrown: unknown): RequestFailure {
  const text = textOf(thrown);
  return thrown instanceof ParameterError
    ? { kind: thrown.kind, field: thrown.field, text }
    : { kind: 'internal', field: null, text };
}

/** The failure in the engine's own words. */
export function messageOfFailure({ text }: RequestFailure): string {
  return worded(text);
}

/** Of a request whose id another one has. */
export function isProcessed(requestId: bigint): RequestFailure {
  return failure(
    'duplicate',
    `A request with the id ${requestId} is being processed; this one is refused and that one goes on.`,
  );
}

export function shuttingDown(): RequestFailure {
  return failure('ended', 'The manager is shutting down and takes no more requests.');
}

/** @param max requests that the host was asked for */
export function notAskedFor(max: number): RequestFailure {
  return failure(
    'overloaded',
    `Only ${max} requests were asked for; this one came beyond them and is refused.`,
  );
}
