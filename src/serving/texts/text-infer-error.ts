import { messageOf } from '../../../base/error-text.js';
import { InferError } from '../../../callbacks/infer/infer-error.js';
import { HostClosedError, QueueFullError, RequestError } from '../../../callbacks/token-request.js';
import { InvalidRequestError } from '../../generation/errors.js';
import { inCallersWords } from '../../generation/refusals.js';
import type { FailureReason } from '../infer-model.js';

/** What a model of texts threw, as the protocols of tensors tell it. */
export function asInferError(error: unknown, promptParam: string): InferError {
  if (error instanceof InferError) return error;
  const told = inCallersWords(error, promptParam);
  const message = messageOf(told);
  if (told instanceof InvalidRequestError) return new InferError(message, 'invalid', { cause: error });
  if (told instanceof QueueFullError || told instanceof HostClosedError) {
    return new InferError(message, 'unavailable', { cause: error });
  }
  const isInvalid = told instanceof RequestError && told.isInvalid;
  return new InferError(message, isInvalid ? 'invalid' : 'internal', { cause: error });
}

/** The reason that statistics count a failure under. */
export function reasonOf({ kind, cause }: InferError): FailureReason {
  if (cause instanceof DOMException && cause.name === 'AbortError') return 'CANCELED';
  if (kind === 'unavailable') return 'REJECTED';
  return kind === 'internal' ? 'BACKEND' : 'OTHER';
}
