import { messageOf } from '../../../base/error-text.js';
import { InferError, type InferErrorKind } from '../../../callbacks/infer/infer-error.js';
import { ApiError, toApiError } from '../web/errors.js';
import { type CallStatus, GrpcError, type StatusName } from './wire/status.js';

const OF_KINDS: Readonly<Record<InferErrorKind, StatusName>> = {
  invalid: 'INVALID_ARGUMENT',
  notFound: 'NOT_FOUND',
  exists: 'ALREADY_EXISTS',
  unavailable: 'UNAVAILABLE',
  unsupported: 'UNIMPLEMENTED',
  internal: 'INTERNAL',
};

/** Refusals that HTTP has a number for. */
const OF_HTTP: Readonly<Record<ApiError['status'], StatusName>> = {
  400: 'INVALID_ARGUMENT',
  401: 'UNAUTHENTICATED',
  403: 'PERMISSION_DENIED',
  404: 'NOT_FOUND',
  405: 'UNIMPLEMENTED',
  408: 'DEADLINE_EXCEEDED',
  413: 'RESOURCE_EXHAUSTED',
  415: 'UNIMPLEMENTED',
  417: 'UNIMPLEMENTED',
  424: 'FAILED_PRECONDITION',
  426: 'UNIMPLEMENTED',
  429: 'RESOURCE_EXHAUSTED',
  499: 'CANCELLED',
  500: 'INTERNAL',
  503: 'UNAVAILABLE',
};

/** An error as sent to a gRPC client. No text of an unexpected error leaves the server. */
export function statusOf(error: unknown): CallStatus {
  if (error instanceof GrpcError) return { name: error.status, message: error.message };
  // What the server itself refuses may have reached the request by its model.
  if (error instanceof InferError && !(error.cause instanceof ApiError))
    return { name: OF_KINDS[error.kind], message: messageOf(error) };
  const { status, message } = toApiError(error instanceof InferError ? error.cause : error);
  return { name: OF_HTTP[status], message };
}
