import { messageOf } from '../../base/error-text.js';
import { InferError, type InferErrorKind } from '../../callbacks/infer/infer-error.js';
import {
  HostClosedError,
  NoWorkerError,
  QueueFullError,
  RequestError,
} from '../../callbacks/token-request.js';
import { InvalidRequestError } from '../errors/request-errors.js';
import type { FailureReason } from './infer-model.js';

/** What a model threw, as the protocols of tensors report it. */
export function asInferError(error: unknown): InferError {
  if (error instanceof InferError) return error;
  return new InferError(messageOf(error), kindOf(error), { cause: error });
}

function kindOf(error: unknown): InferErrorKind {
  if (error instanceof InvalidRequestError) return 'invalid';
  if (error instanceof RequestError) return error.isInvalid ? 'invalid' : 'internal';
  const isRefused = [QueueFullError, HostClosedError, NoWorkerError].some((kind) => error instanceof kind);
  return isRefused || isAbort(error) ? 'unavailable' : 'internal';
}

/** The reason that statistics count a failure under. */
export function reasonOf({ kind, cause }: InferError): FailureReason {
  if (isAbort(cause)) return 'CANCELED';
  if (kind === 'unavailable') return 'REJECTED';
  return kind === 'internal' ? 'BACKEND' : 'OTHER';
}

/** A request was ended by something other than its client. */
export function requestCancelled(): InferError {
  return asInferError(new DOMException('The request was cancelled.', 'AbortError'));
}

/** A signal's reason: the client has left. */
function isAbort(error: unknown): boolean {
  return error instanceof DOMException && ['AbortError', 'TimeoutError'].includes(error.name);
}

/** A request that is wrong, whichever protocol it came by. */
export function malformed(message: string): InferError {
  return new InferError(message, 'invalid');
}
