import type { Outcome } from '../outcomes.js';

const NO_CONNECTION: ReadonlySet<string> = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENETDOWN',
  'ETIMEDOUT',
  'UND_ERR_CONNECT_TIMEOUT',
]);
/** Error codes of the client's limits: too many open files, no free port, no memory for a socket. */
const OWN_LIMITS: ReadonlySet<string> = new Set(['EMFILE', 'ENFILE', 'EADDRNOTAVAIL', 'ENOBUFS', 'ENOMEM']);
const NO_HTTP = /^(HPE_|UND_ERR_(HEADERS_OVERFLOW|RES_|RESPONSE|INVALID_ARG|INVALID_RETURN_VALUE))/;

/** Outcome of a request whose connection had an error. `isBegun`: bytes of an answer have come. */
export function outcomeOfError(error: Error, isBegun: boolean): Outcome {
  const code = codeOf(error);
  if (OWN_LIMITS.has(code)) return 'client_limit';
  if (!isBegun && NO_CONNECTION.has(code)) return 'connect_failed';
  if (error.name === 'HTTPParserError' || NO_HTTP.test(code)) return 'malformed';
  if (!isBegun && /^(CERT_|ERR_TLS_|ERR_SSL_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_)/.test(code))
    return 'connect_failed';
  return 'connection_reset';
}

export function wordsOfError(error: Error): string {
  const code = codeOf(error);
  const words = error instanceof AggregateError ? error.errors.map(String).join('; ') : error.message;
  return code === '' || words.includes(code) ? words : `${words} (${code})`;
}

export function codeOf(error: Error & { code?: unknown }): string {
  if (typeof error.code === 'string') return error.code;
  const inner = error instanceof AggregateError ? error.errors[0] : error.cause;
  return inner instanceof Error ? codeOf(inner) : '';
}
