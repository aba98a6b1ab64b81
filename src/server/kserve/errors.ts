import { messageOf } from '../../../base/error-text.js';
import { InferError, type InferErrorKind } from '../../../callbacks/infer/infer-error.js';
import type { Metrics } from '../metrics/metrics.js';
import { ApiError, toApiError } from '../web/errors.js';
import type { ServerLog } from '../web/server-log.js';

const STATUS: Readonly<Record<InferErrorKind, number>> = {
  invalid: 400,
  notFound: 404,
  exists: 400,
  unavailable: 503,
  unsupported: 501,
  internal: 500,
};

/** Cohere's routes, whose version is their own. */
const OF_COHERE = new Set(['/v2/embed', '/v2/rerank']);
/** The route of WebSockets for any model, where AMD's Inference Server has it. */
export const ANY_MODEL_SOCKET = '/models/infer';

/** Paths whose errors have the form of the Open Inference Protocol: {"error": text}. */
export function isOfProtocol(path: string): boolean {
  return path === '/v2' || path === ANY_MODEL_SOCKET || (path.startsWith('/v2/') && !OF_COHERE.has(path));
}

/** The status of an error as the protocol has it. */
export function statusOf(error: unknown): number {
  const ofModel = ofModelAlone(error);
  return ofModel === null ? toApiError(ownOf(error)).status : STATUS[ofModel.kind];
}

/** The error as a model's; null: it is the server's own, which may have reached the request by its model. */
function ofModelAlone(error: unknown): InferError | null {
  return error instanceof InferError && !(error.cause instanceof ApiError) ? error : null;
}

const ownOf = (error: unknown) => (error instanceof InferError ? error.cause : error);

/** An error as clients of the protocol know it. Those of the server's own, such as a body that is too long, keep their status. */
export function errorAnswer(error: unknown): Response {
  const { status, headers, body } = protocolError(error);
  return new Response(body, { status, headers });
}

/** The same, before it is a Response. */
export function protocolError(error: unknown): {
  status: number;
  headers: Record<string, string>;
  body: string;
} {
  const apiError = ofModelAlone(error) === null ? toApiError(ownOf(error)) : null;
  const headers = { 'content-type': 'application/json', ...apiError?.headers };
  return { status: statusOf(error), headers, body: JSON.stringify({ error: wordsOf(error) }) };
}

/** The sentence of an error. No text of an unexpected one leaves the server. */
export function wordsOf(error: unknown): string {
  return error instanceof InferError ? messageOf(error) : toApiError(error).message;
}

/** Where a server notes what it refuses. */
interface Noted {
  metrics: Metrics;
  log: ServerLog;
  requestId: string;
  path: string;
}

/** Counts a refusal by its status; a failure of the server's own is logged. */
export function noteProtocolError(error: unknown, { metrics, log, requestId, path }: Noted): void {
  const status = statusOf(error);
  metrics.refused(`infer_${status}`);
  if (status === 500) log.error({ err: error, requestId, path }, 'request failed');
}

/** No route, in the words that clients of the protocol know. */
export function notFound(): ApiError {
  return new ApiError(404, 'Not Found', { code: 'not_found' });
}
