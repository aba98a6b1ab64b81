import { messageOf } from '../../../base/error-text.js';
import { InferError, type InferErrorKind } from '../../../callbacks/infer/infer-error.js';
import { ApiError, toApiError } from '../openai/errors.js';

const STATUS: Readonly<Record<InferErrorKind, number>> = {
  invalid: 400,
  notFound: 404,
  unavailable: 503,
  unsupported: 501,
  internal: 500,
};

/** Paths whose errors have the form of the Open Inference Protocol: {"error": text}. */
export function isOfProtocol(path: string): boolean {
  return path === '/v2' || path.startsWith('/v2/');
}

/** The status of an error as the protocol has it. */
export function statusOf(error: unknown): number {
  return error instanceof InferError ? STATUS[error.kind] : toApiError(error).status;
}

/** An error as clients of the protocol know it. Those of the server's own, such as a body that is too long, keep their status. */
export function errorAnswer(error: unknown): Response {
  const status = statusOf(error);
  const apiError = error instanceof InferError ? null : toApiError(error);
  const message = apiError === null ? messageOf(error) : apiError.message;
  return new Response(JSON.stringify({ error: message }), {
    status,
    headers: { 'content-type': 'application/json', ...apiError?.headers },
  });
}

/** A request whose JSON or whose headers are wrong. */
export function malformed(message: string): InferError {
  return new InferError(message, 'invalid');
}

/** No route, in the words that clients of the protocol know. */
export function notFound(): ApiError {
  return new ApiError(404, 'Not Found', { code: 'not_found' });
}
