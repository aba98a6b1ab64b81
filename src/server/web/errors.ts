import type { NamedText } from '../../../base/named-text.js';
import { SkeinError } from '../../../base/skein-error.js';
import { StoreError } from '../../../base/store-errors.js';
import { ParameterError } from '../../../callbacks/sampling-params.js';
import {
  HostClosedError,
  NoWorkerError,
  QueueFullError,
  RequestError,
} from '../../../callbacks/token-request.js';
import { ChatTemplateError } from '../../../models/chat-template.js';
import { HelperBusyError, HelperClosedError } from '../../../models/helper-pool.js';
import { PictureDecoderError, PicturesBusyError } from '../../../models/images/picture-error.js';
import {
  PromptTimeError,
  TokenizerBusyError,
  TokenizerClosedError,
} from '../../../models/tokenizer/index.js';
import { GuideCheckTimeError, InvalidRequestError } from '../../errors/request-errors.js';
import { inCallersWords } from '../../generation/refusals.js';
import { optionOfInput } from '../../request-vocabulary.js';
import { ModelLoadError, type ModelLoadFault } from '../../serving/model-load-error.js';
import { type CallField, fieldsOf, inFields } from './field-words.js';

type ErrorStatus = 400 | 401 | 403 | 404 | 405 | 408 | 413 | 415 | 417 | 424 | 426 | 429 | 499 | 500 | 503;

/**
 * Most characters of a message, which may quote the request: its beginning and end are kept, which say what is wrong.
 */
const MAX_MESSAGE = 1000;
/** Most characters of a field's name, which may be a client's own. */
const MAX_PARAM = 200;

function shortened(text: string, most: number): string {
  if (text.length <= most) return text;
  const end = Math.floor(most / 3);
  // Half a character at the cut would not be valid UTF-8.
  return `${text.slice(0, most - end - 1)}\u2026${text.slice(-end)}`.replaceAll(/\p{Surrogate}/gu, '\ufffd');
}

/**
 * An error in the form that OpenAI's clients know: {"error": {"message", "type", "param", "code"}} with an HTTP status.
 */
export class ApiError extends SkeinError {
  override name = 'ApiError';
  override readonly code = 'SKEIN_API';
  readonly status: ErrorStatus;
  readonly type: string;
  readonly param: string | null;
  /** The `code` of the body, one of OpenAI's where there is one. */
  readonly apiCode: string | null;
  readonly headers: Readonly<Record<string, string>>;

  constructor(
    status: ErrorStatus,
    text: NamedText,
    options: {
      type?: string;
      param?: string | null;
      code?: string | null;
      headers?: Record<string, string>;
      /** What is in the log and in no answer. */
      cause?: unknown;
    } = {},
  ) {
    super(text, options.cause === undefined ? undefined : { cause: options.cause });
    this.message = shortened(this.message, MAX_MESSAGE);
    this.status = status;
    this.type = options.type ?? (status >= 500 ? 'server_error' : 'invalid_request_error');
    this.param = options.param == null ? null : shortened(options.param, MAX_PARAM);
    this.apiCode = options.code ?? null;
    this.headers = options.headers ?? {};
  }

  /** The error with the names of another route in its sentence and its field. */
  inFields(callField: CallField): ApiError {
    const param = this.param === null ? null : callField(this.param);
    if (typeof this.text === 'string' && param === this.param) return this;
    const { status, type, apiCode, headers, cause } = this;
    return new ApiError(status, inFields(this.text, callField), {
      type,
      param,
      code: apiCode,
      headers: { ...headers },
      cause,
    });
  }

  body(): { error: { message: string; type: string; param: string | null; code: string | null } } {
    return { error: { message: this.message, type: this.type, param: this.param, code: this.apiCode } };
  }

  response(): Response {
    return new Response(JSON.stringify(this.body()), {
      status: this.status,
      headers: { 'content-type': 'application/json', ...this.headers },
    });
  }
}

/** Seconds after which a client refused for lack of room may try again. */
const RETRY_AFTER_S = 1;

/** Longest time to report, in seconds: OpenAI's clients ignore a minute and more. */
const MAX_RETRY_AFTER_S = 30;

/** Whole seconds for the Retry-After header. */
function retryAfter(waitMs: number | null): string {
  const seconds = Math.ceil((waitMs ?? 0) / 1000);
  return String(Math.min(Math.max(seconds, RETRY_AFTER_S), MAX_RETRY_AFTER_S));
}

/** Error for a client that left: it is never sent, but the access log and metrics record it. */
export function clientLeft(): ApiError {
  return new ApiError(499, 'The client closed the request.', { code: 'client_closed_request' });
}

/**
 * Error of a server that is shutting down: another process may take the request, one in this place only after this one
 * has ended.
 * @param endsInMs most milliseconds until then; null where it is not known.
 */
export function shuttingDown(endsInMs: number | null = null): ApiError {
  return new ApiError(503, 'The server is shutting down and takes no new requests.', {
    code: 'server_shutting_down',
    headers: { 'retry-after': retryAfter(endsInMs), connection: 'close' },
  });
}

/** Seconds after which a client may ask a server again whose models are being loaded. */
const LOADING_RETRY_S = 2;

/** Error while models are being loaded. @param reason what the start waits for, as a clause */
export function stillLoading(reason: string): ApiError {
  return new ApiError(503, `The server is not ready yet: ${reason}.`, {
    code: 'server_loading',
    headers: { 'retry-after': String(LOADING_RETRY_S) },
  });
}

/** Error for an answer in progress when the time for draining was over. */
export function cutOff(): ApiError {
  return new ApiError(503, 'The server is shutting down, and this answer was cut off.', {
    code: 'server_shutting_down',
    headers: { 'retry-after': retryAfter(null), connection: 'close' },
  });
}

const LOAD_STATUS: Readonly<Record<ModelLoadFault, ErrorStatus>> = {
  tooLarge: 503,
  tooMany: 429,
  slow: 503,
  failed: 500,
};

/** Error of a model that was to be loaded for the request. */
function loadError({ fault, message }: ModelLoadError): ApiError {
  const status = LOAD_STATUS[fault];
  const headers = status === 500 || fault === 'tooLarge' ? {} : { 'retry-after': retryAfter(null) };
  const code = status === 429 ? 'queue_full' : 'model_not_loaded';
  const type = status === 429 ? 'rate_limit_error' : 'server_error';
  return new ApiError(status, message, { type, param: 'model', code, headers });
}

/** Error of a store that several servers share. */
function storeError(error: StoreError): ApiError {
  const { kind } = error;
  const headers = kind === 'away' ? { 'retry-after': String(RETRY_AFTER_S) } : undefined;
  const code = kind === 'full' ? 'storage_full' : 'storage_failed';
  return new ApiError(503, TOLD_OF_STORES[kind], { code, cause: error, ...(headers && { headers }) });
}

/** Messages for clients; names of streams and keys are in the log. */
const TOLD_OF_STORES: Readonly<Record<StoreError['kind'], string>> = {
  away: 'What is stored cannot be reached now: the NATS server that keeps it does not answer.',
  full: 'There is no room for more: the NATS server that keeps what is stored is full.',
  foreign: "What is stored cannot be read: it is damaged, or none of this server's.",
};

/** Errors of helpers that have more to do than they take. */
const BUSY = [TokenizerBusyError, HelperBusyError, PicturesBusyError];

const CHAT_FIELDS = fieldsOf('chat');

/** Converts anything thrown to the error that a client sees. No text of an unexpected error leaves the server. */
export function toApiError(error: unknown, callField: CallField = CHAT_FIELDS): ApiError {
  if (error instanceof ApiError) return error.inFields(callField);
  if (error instanceof InvalidRequestError) {
    const param = error.param === null ? null : callField(error.param);
    return new ApiError(400, inFields(error.text, callField), { param, code: error.apiCode });
  }
  if (error instanceof ChatTemplateError) {
    return new ApiError(400, inFields(error.text, callField), { param: callField('messages') });
  }
  if (error instanceof ParameterError) {
    const param = callField(optionOfInput(error.field) ?? error.field);
    return new ApiError(400, inFields(error.text, callField), { param });
  }
  if (error instanceof QueueFullError) {
    // 429 and not 503: the process is well, and a balancer that counts 5xx should not take it out.
    return new ApiError(429, error.message, {
      type: 'rate_limit_error',
      code: 'queue_full',
      headers: { 'retry-after': retryAfter(error.retryAfterMs) },
    });
  }
  if (error instanceof ModelLoadError) return loadError(error);
  if (error instanceof StoreError) return storeError(error);
  if (error instanceof PromptTimeError)
    return new ApiError(400, error.message, { code: 'prompt_too_complex' });
  if (BUSY.some((kind) => error instanceof kind)) {
    const headers = { 'retry-after': String(RETRY_AFTER_S) };
    const { message } = error as Error;
    return new ApiError(429, message, { type: 'rate_limit_error', code: 'queue_full', headers });
  }
  if (error instanceof PictureDecoderError)
    return new ApiError(500, error.message, { code: 'picture_decoder_failed', cause: error });
  if (error instanceof GuideCheckTimeError) {
    const headers = { 'retry-after': String(RETRY_AFTER_S) };
    return new ApiError(503, error.message, { code: 'server_busy', headers });
  }
  // Where the engine was closed, the text may still have been waiting for it.
  const isClosed = [HostClosedError, HelperClosedError, TokenizerClosedError].some(
    (kind) => error instanceof kind,
  );
  if (isClosed || error instanceof NoWorkerError) {
    const message = error instanceof NoWorkerError ? error.message : 'The engine is not running.';
    return new ApiError(503, message, {
      code: 'engine_unavailable',
      headers: { 'retry-after': String(RETRY_AFTER_S) },
    });
  }
  if (error instanceof RequestError && error.isInvalid)
    return toApiError(inCallersWords(error, null), callField);
  if (error instanceof RequestError && error.kind === 'overloaded') {
    const headers = { 'retry-after': String(RETRY_AFTER_S) };
    return new ApiError(429, error.message, { type: 'rate_limit_error', code: 'engine_busy', headers });
  }
  if (error instanceof RequestError) return new ApiError(500, error.message, { code: 'engine_error' });
  return new ApiError(500, 'The server failed to handle this request.', { code: 'internal_error' });
}
