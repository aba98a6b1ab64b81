import { SkeinError } from '../../base/skein-error.js';

/** Kinds of failures of a tensor request, by which each protocol chooses its status. */
export type InferErrorKind =
  /** The request is wrong: HTTP 400. */
  | 'invalid'
  /** No such model or version: 404. */
  | 'notFound'
  /** There is one of this name already: 400. */
  | 'exists'
  /** The queue is full, the time in it is over, or the model is not ready: 503. */
  | 'unavailable'
  /** The model or this server does not do that: 501. */
  | 'unsupported'
  /** The model failed: 500. */
  | 'internal';

/** Why a tensor request was not answered, in one sentence. */
export class InferError extends SkeinError {
  override name = 'InferError';
  override readonly code = 'SKEIN_INFER';
  readonly kind: InferErrorKind;

  constructor(message: string, kind: InferErrorKind, options?: ErrorOptions) {
    super(message, options);
    this.kind = kind;
  }
}
