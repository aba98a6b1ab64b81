import { type NamedText, worded } from '../base/named-text.js';
import { textOf } from '../base/skein-error.js';
import { AdapterMissingError } from './adapter-missing-error.js';
import { ParameterError } from './sampling-params.js';

/**
 * Why a request has no answer:
 *
 *   invalid      a tensor or a value that no engine takes
 *   unsupported  something that this engine, as built or started, cannot do
 *   tooLong      the request needs more than the engine has, even with all of it to itself
 *   adapter      the adapter that it names is not held: its weights have to be sent with it
 *   guide        the form asked for the answer cannot be followed
 *   noToken      a guide, biases and bans of it, each of which would do alone, leave no token to draw
 *   duplicate    what the program starts is running already
 *   overloaded   there is no room for it now
 *   ended        the engine ends, and takes or keeps no more
 *   internal     the engine failed
 */
export type FailureKind =
  | 'invalid'
  | 'unsupported'
  | 'tooLong'
  | 'adapter'
  | 'guide'
  | 'noToken'
  | 'duplicate'
  | 'overloaded'
  | 'ended'
  | 'internal';

/** Why a request failed, as data: it crosses threads as it is, and is worded where it is read. */
export interface RequestFailure {
  kind: FailureKind;
  /** Tensor or TokenRequest field that is at fault; null: none is. */
  field: string | null;
  text: NamedText;
}

const FAULTS: ReadonlySet<FailureKind> = new Set([
  'invalid',
  'unsupported',
  'tooLong',
  'adapter',
  'guide',
  'noToken',
]);

/** True where the request itself is at fault: it would end so again. Only a `noToken` has run until then. */
export function isRequestsFault(kind: FailureKind): boolean {
  return FAULTS.has(kind);
}

const KINDS: ReadonlySet<unknown> = new Set<FailureKind>([
  ...FAULTS,
  'duplicate',
  'overloaded',
  'ended',
  'internal',
]);

/** True for the name of a kind, as it comes from elsewhere. */
export function isFailureKind(value: unknown): value is FailureKind {
  return KINDS.has(value);
}

export function failure(kind: FailureKind, text: NamedText, field: string | null = null): RequestFailure {
  return { kind, field, text };
}

/**
 * Failure for an error thrown while a request was read: a ParameterError has its kind, an adapter that is missing is the
 * request's fault, anything else the engine's.
 */
export function failureOf(thrown: unknown): RequestFailure {
  const text = textOf(thrown);
  if (thrown instanceof AdapterMissingError) return failure('adapter', text, 'lora_task_id');
  return thrown instanceof ParameterError
    ? { kind: thrown.kind, field: thrown.field, text }
    : { kind: 'internal', field: null, text };
}

/** The failure in the engine's own words. */
export function messageOfFailure({ text }: RequestFailure): string {
  return worded(text);
}

export function shuttingDown(): RequestFailure {
  return failure('ended', 'The manager is shutting down and takes no more requests.');
}

/** Failure of a request beyond those asked for. @param max requests that the host was asked for */
export function notAskedFor(max: number): RequestFailure {
  return failure(
    'overloaded',
    `Only ${max} requests were asked for; this one came beyond them and is refused.`,
  );
}
