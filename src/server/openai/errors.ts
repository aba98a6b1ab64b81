import { ParameterError } from '../../../callbacks/sampling-params.js';
import { HostClosedError, QueueFullError, RequestError } from '../../../callbacks/token-request.js';
import { ChatTemplateError } from '../../../models/chat-template.js';
import { HelperBusyError } from '../../../models/helper-pool.js';
import { PromptTimeError, TokenizerBusyError } from '../../../models/tokenizer/index.js';
import { withFlagNames } from '../../flag-names.js';
import { GuideCheckTimeError, InvalidRequestError } from '../../generation/errors.js';
import { inCallersWords } from '../../generation/refusals.js';

type ErrorStatus = 400 | 401 | 403 | 404 | 405 | 408 | 413 | 415 | 417 | 429 | 499 | 500 | 503;

/** Characters of a message, which may quote the request: its beginning and its end say what is wrong. */
const MAX_MESSAGE = 1000;
/** Of the name of a field, which may be a client's own. */
const MAX_PARAM = 200;

function shortened(text: string, most: number): string {
  if (text.length <= most) return text;
  const end = Math.floor(most / 3);
  // Half a character of the cut would not be UTF-8.
  return `${text.slice(0, most - end - 1)}\u2026${text.slice(-end)}`.replaceAll(/\p{Surrogate}/gu, '\ufffd');
}

/** An error as OpenAI's clients know it: {"error": {"message", "type", "param", "code"}} with an HTTP status. */
export class ApiError extends Error {
  override name = 'ApiError';
  readonly status: ErrorStatus;
  readonly type: string;
  readonly param: string | null;
  readonly code: string | null;
  readonly headers: Readonly<Record<string, string>>;

  constructor(
    status: ErrorStatus,
    message: string,
    options: {
      type?: string;
      param?: string | null;
      code?: string | null;
      headers?: Record<string, string>;
    } = {},
  ) {
    super(shortened(message, MAX_MESSAGE));
    this.status = status;
    this.type = options.type ?? (status >= 500 ? 'server_error' : 'invalid_request_error');
    this.param = options.param == null ? null : shortened(options.param, MAX_PARAM);
    this.code = options.code ?? null;
    this.headers = options.headers ?? {};
  }

  body(): { error: { message: string; type: string; param: string | null; code: string | null } } {
    return { error: { message: this.message, type: this.type, param: this.param, code: this.code } };
  }

  response(): Response {
    return new Response(JSON.stringify(this.body()), {
      status: this.status,
      headers: { 'content-type': 'application/json', ...this.headers },
    });
  }
}

/** Seconds after which a client refused for lack of room may come again. */
const RETRY_AFTER_S = 1;

/** The longest time to name: OpenAI's clients pay no heed to a minute and more. */
const MAX_RETRY_AFTER_S = 30;

/** Whole seconds, for the header. */
function retryAfter(waitMs: number | null): string {
  const seconds = Math.ceil((waitMs ?? 0) / 1000);
  return String(Math.min(Math.max(seconds, RETRY_AFTER_S), MAX_RETRY_AFTER_S));
}

/** Nobody reads this; it is what the access log and the metrics say. */
export function clientLeft(): ApiError {
  return new ApiError(499, 'The client closed the request.', { code: 'client_closed_request' });
}

/**
 * The server is going down: this process takes nothing more, another may, but in its place not before it has ended.
 * @param endsInMs until that is so, at the latest; null where it is not known.
 */
export function shuttingDown(endsInMs: number | null = null): ApiError {
  return new ApiError(503, 'The server is shutting down and takes no new requests.', {
    code: 'server_shutting_down',
    headers: { 'retry-after': retryAfter(endsInMs), connection: 'close' },
  });
}

/** An answer was under way when the time for ending it was over. */
export function cutOff(): ApiError {
  return new ApiError(503, 'The server is shutting down, and this answer was cut off.', {
    code: 'server_shutting_down',
    headers: { 'retry-after': retryAfter(null), connection: 'close' },
  });
}

/** Options of a request that the HTTP API calls by another name than by their own in snake case. */
const PARAM_NAMES: Readonly<Record<string, string>> = {
  minLength: 'min_tokens',
  stopTokens: 'stop_token_ids',
  logProbs: 'top_logprobs',
  contextLogProbs: 'prompt_logprobs',
  includeStop: 'include_stop_str_in_output',
  beams: 'best_of',
};

function paramName(option: string): string {
  return PARAM_NAMES[option] ?? option.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

/** A message that begins with the name of an option, with the name that the client knows. */
function namedForClients(message: string, option: string | null): string {
  const own = option !== null && message.startsWith(`${option} `) ? option : '';
  return (own === '' ? '' : paramName(own)) + withFlagNames(message.slice(own.length));
}

/** The error that a client sees for anything thrown below. Nothing of an unexpected error's text leaves the server. */
export function toApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  if (error instanceof InvalidRequestError) {
    const param = error.param === null ? null : paramName(error.param);
    return new ApiError(400, namedForClients(error.message, error.param), { param, code: error.code });
  }
  if (error instanceof ChatTemplateError) return new ApiError(400, error.message, { param: 'messages' });
  if (error instanceof ParameterError) {
    return new ApiError(400, namedForClients(error.message, error.field), { param: paramName(error.field) });
  }
  if (error instanceof QueueFullError) {
    // 429 and not 503: the process is well, and a balancer that counts 5xx should not take it out.
    return new ApiError(429, error.message, {
      type: 'rate_limit_error',
      code: 'queue_full',
      headers: { 'retry-after': retryAfter(error.retryAfterMs) },
    });
  }
  if (error instanceof PromptTimeError)
    return new ApiError(400, error.message, { code: 'prompt_too_complex' });
  if (error instanceof TokenizerBusyError || error instanceof HelperBusyError) {
    const headers = { 'retry-after': String(RETRY_AFTER_S) };
    return new ApiError(429, error.message, { type: 'rate_limit_error', code: 'queue_full', headers });
  }
  if (error instanceof GuideCheckTimeError) {
    const headers = { 'retry-after': String(RETRY_AFTER_S) };
    return new ApiError(503, error.message, { code: 'server_busy', headers });
  }
  if (error instanceof HostClosedError) {
    return new ApiError(503, 'The engine is not running.', {
      code: 'engine_unavailable',
      headers: { 'retry-after': String(RETRY_AFTER_S) },
    });
  }
  if (error instanceof RequestError && error.isInvalid) return toApiError(inCallersWords(error, null));
  if (error instanceof RequestError) return new ApiError(500, error.message, { code: 'engine_error' });
  return new ApiError(500, 'The server failed to handle this request.', { code: 'internal_error' });
}
