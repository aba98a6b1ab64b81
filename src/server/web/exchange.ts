import type { Context } from 'hono';
import type { AppEnv } from './app-env.js';
import type { RequestRegistry } from './request-registry.js';
import type { RequestTerms } from './request-terms.js';
import type { ServerLog } from './server-log.js';
import { HttpStreamConnection, type StreamConnection } from './stream-connection.js';
import { noteWarning, type Warn } from './warnings.js';

/** Names the engine that is to answer, by its system_fingerprint. */
export const ENGINE_HEADER = 'x-skein-engine';

/** Engine that ENGINE_HEADER names; an empty header names none. */
export const engineOf = (header: string | undefined): string | undefined => header || undefined;

/** Services that every exchange uses. */
export interface ExchangeServices {
  log: ServerLog;
  /** Registry of the requests that are being answered. */
  requests: RequestRegistry;
  /** Most milliseconds that an answer may take; null: no limit. */
  requestTimeoutMs: number | null;
}

/** HTTP exchange that an answer belongs to. */
export interface Exchange {
  /** Signal aborted when the client leaves. */
  signal: AbortSignal;
  /** Connection that the answer is sent on; null where there is no socket. */
  connection: StreamConnection | null;
  logError: (error: unknown) => void;
  warn: Warn;
  terms: RequestTerms;
}

/** What an answer needs of its HTTP exchange. */
export function exchangeOf(
  c: Context<AppEnv>,
  { log, requests, requestTimeoutMs }: ExchangeServices,
): Exchange {
  const outgoing = c.env?.outgoing;
  return {
    signal: c.req.raw.signal,
    connection: outgoing === undefined ? null : new HttpStreamConnection(outgoing),
    logError: (error) =>
      log.error({ err: error, requestId: c.get('requestId'), path: c.req.path }, 'stream failed'),
    warn: (text) => {
      log.warn({ requestId: c.get('requestId'), path: c.req.path }, text);
      noteWarning(c, text);
    },
    terms: {
      caller: c.get('caller'),
      requestId: c.get('requestId'),
      timeLimitMs: requestTimeoutMs,
      registry: requests,
      memory: c.get('memory'),
      tally: c.get('tally'),
      admit: c.get('admit'),
      onParting: (parting) => c.set('parting', parting),
      trace: c.get('trace'),
      engine: engineOf(c.req.header(ENGINE_HEADER)),
      isBatch: c.env?.inner !== undefined,
    },
  };
}
