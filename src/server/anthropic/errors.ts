import type { Context } from 'hono';
import type { AppEnv } from '../web/app-env.js';
import type { ApiError } from '../web/errors.js';

const TYPES: Readonly<Record<number, string>> = {
  401: 'authentication_error',
  403: 'permission_error',
  404: 'not_found_error',
  408: 'timeout_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
  503: 'overloaded_error',
};

/** The header that Anthropic's clients always send. */
export const ANTHROPIC_VERSION = 'anthropic-version';

/** True where a client speaks Anthropic's API: by the path, or by its header. */
export function speaksAnthropic(c: Context): boolean {
  const { path } = c.req;
  const isMessages = path === '/v1/messages' || path.startsWith('/v1/messages/');
  return isMessages || c.req.header(ANTHROPIC_VERSION) !== undefined;
}

/** Returns the request's id by the name that Anthropic's clients read. */
export async function anthropicRequestIds(c: Context<AppEnv>, next: () => Promise<void>): Promise<void> {
  await next();
  if (speaksAnthropic(c)) c.res.headers.set('request-id', c.get('requestId'));
}

/** An error in the form of Anthropic's API. Its details name the field at fault and the error in a word. */
export function errorBody(error: ApiError) {
  const { status, apiCode, param } = error;
  const type = TYPES[status] ?? (status >= 500 ? 'api_error' : 'invalid_request_error');
  // Clients find out by these words that a conversation has to be made shorter.
  const start = apiCode === 'context_length_exceeded' ? 'prompt is too long: ' : '';
  const details = {
    ...(apiCode === null ? {} : { error_code: apiCode }),
    ...(param === null ? {} : { param }),
  };
  const hasDetails = Object.keys(details).length > 0;
  return { type: 'error', error: { type, message: start + error.message, ...(hasDetails && { details }) } };
}

/** The answer of an error. @param requestId id of the request, which Anthropic's errors repeat */
export function errorResponse(error: ApiError, requestId: string): Response {
  return new Response(JSON.stringify({ ...errorBody(error), request_id: requestId }), {
    status: error.status,
    headers: { 'content-type': 'application/json', ...error.headers },
  });
}
