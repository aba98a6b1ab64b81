import { randomUUID } from 'node:crypto';
import type { HttpBindings } from '@hono/node-server';
import { type Context, Hono } from 'hono';
import { bodyLimit } from 'hono/body-limit';
import { cors } from 'hono/cors';
import { requireApiKey } from './auth.js';
import type { ServerMetrics } from './metrics.js';
import { chatCompletions } from './openai/chat-completions.js';
import { completions } from './openai/completions.js';
import { ApiError, shuttingDown, toApiError } from './openai/errors.js';
import type { EventStreamOptions } from './openai/event-stream.js';
import { DEFAULT_EVENT_STREAM_OPTIONS } from './openai/event-stream.js';
import { modelObject } from './openai/models.js';
import type { Exchange } from './openai/respond.js';
import type { RouteContext } from './openai/route-context.js';
import { findModel } from './openai/route-context.js';
import { bodyTooLarge, MAX_BODY_BYTES, readJson } from './read-json.js';
import type { ServedModel } from './served-model.js';
import type { ServerState } from './server-state.js';

/** Where the server's own events go. */
export interface ServerLog {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

export interface AppOptions {
  models: readonly ServedModel[];
  state: ServerState;
  metrics: ServerMetrics;
  version: string;
  log: ServerLog;
  apiKey?: string | null;
  eventStream?: Partial<EventStreamOptions>;
}

type Env = { Bindings: Partial<HttpBindings>; Variables: { requestId: string } };

/** Paths and the one method each of them has. */
const METHODS: Readonly<Record<string, 'GET' | 'POST'>> = {
  '/v1/chat/completions': 'POST',
  '/v1/completions': 'POST',
  '/v1/models': 'GET',
  '/v1/models/:id{.+}': 'GET',
  '/health': 'GET',
  '/live': 'GET',
  '/version': 'GET',
  '/metrics': 'GET',
};

/** Asked every few seconds by machines: their lines would bury the others. */
const PROBES: ReadonlySet<string> = new Set(['/health', '/live', '/metrics']);

/** The HTTP API as a Hono app; it knows nothing of sockets. */
export function createApp(options: AppOptions): Hono<Env> {
  const { log, metrics, state } = options;
  const context: RouteContext = {
    models: options.models,
    observe: (request) => metrics.observe(request),
    eventStream: { ...DEFAULT_EVENT_STREAM_OPTIONS, ...options.eventStream },
  };
  const app = new Hono<Env>();
  const respondToError = (error: unknown, c: Context<Env>): Response => {
    const apiError = toApiError(error);
    // A 503 is a refusal, and /health says why.
    if (apiError.status === 500) {
      log.error({ err: error, requestId: c.get('requestId'), path: c.req.path }, 'request failed');
    }
    return apiError.response();
  };
  app.onError(respondToError);
  app.notFound((c) => {
    const message = `There is no ${c.req.method} ${c.req.path} on this server.`;
    return respondToError(new ApiError(404, message, { code: 'not_found' }), c);
  });

  app.use(requestIds);
  app.use(observeHttp(metrics, log));
  app.use(cors({ origin: '*', exposeHeaders: ['X-Request-Id', 'Retry-After'] }));
  app.use(requireApiKey(options.apiKey ?? null));
  app.use('/v1/*', async (c, next) => {
    if (c.req.method === 'POST' && state.status === 'draining') throw shuttingDown();
    await next();
  });
  app.use(bodyLimit({ maxSize: MAX_BODY_BYTES, onError: (c) => respondToError(bodyTooLarge(), c) }));

  const exchangeOf = (c: Context<Env>): Exchange => {
    const outgoing = c.env?.outgoing;
    return {
      signal: c.req.raw.signal,
      disconnect: outgoing === undefined ? null : () => void outgoing.destroy(),
      logError: (error) =>
        log.error({ err: error, requestId: c.get('requestId'), path: c.req.path }, 'stream failed'),
    };
  };
  app.post('/v1/chat/completions', async (c) => chatCompletions(context, await readJson(c), exchangeOf(c)));
  app.post('/v1/completions', async (c) => completions(context, await readJson(c), exchangeOf(c)));
  app.get('/v1/models', (c) => c.json({ object: 'list', data: options.models.map(modelObject) }));
  // Names may hold slashes, as those of the Hugging Face hub do.
  app.get('/v1/models/:id{.+}', (c) => c.json(modelObject(findModel(context, c.req.param('id')))));
  app.get('/health', (c) => {
    const { status, reason, restarts } = state;
    return c.json({ status, reason: reason ?? undefined, restarts }, status === 'ready' ? 200 : 503);
  });
  app.get('/live', (c) => c.json({ status: 'live' }));
  app.get('/version', (c) => c.json({ version: options.version }));
  app.get('/metrics', async (c) =>
    c.text(await metrics.text(), 200, { 'content-type': metrics.contentType }),
  );
  for (const [path, method] of Object.entries(METHODS)) {
    app.all(path, (c) => {
      const message = `${c.req.path} takes ${method}, not ${c.req.method}.`;
      throw new ApiError(405, message, { code: 'method_not_allowed', headers: { allow: method } });
    });
  }
  return app;
}

/** The client's X-Request-Id, where it is one, or a new one; it comes back with every answer. */
async function requestIds(c: Context<Env>, next: () => Promise<void>): Promise<void> {
  const given = c.req.header('x-request-id');
  const id = given !== undefined && /^[\x21-\x7e]{1,128}$/.test(given) ? given : `req-${randomUUID()}`;
  c.set('requestId', id);
  c.header('x-request-id', id);
  await next();
  c.res.headers.set('x-request-id', id);
}

/** Counts and times each exchange up to its last byte, a stream's too, and writes the access log. */
function observeHttp(metrics: ServerMetrics, log: ServerLog) {
  return async (c: Context<Env>, next: () => Promise<void>): Promise<void> => {
    const startMs = performance.now();
    await next();
    const handler = knownPath(c.req.path);
    const { method } = c.req;
    const { status } = c.res;
    const record = () => {
      const durationMs = performance.now() - startMs;
      metrics.httpRequest({ handler, method, status, durationMs });
      const requestId = c.get('requestId');
      // Microseconds are as fine as it means something.
      const fields = { requestId, method, path: c.req.path, status, durationMs: rounded(durationMs) };
      if (PROBES.has(handler)) log.debug(fields, 'request');
      else log.info(fields, 'request');
    };
    const outgoing = c.env?.outgoing;
    if (outgoing === undefined || outgoing.closed) record();
    else outgoing.once('close', record);
  };
}

function rounded(milliseconds: number): number {
  return Math.round(milliseconds * 1000) / 1000;
}

/** The route that a path belongs to. Unknown paths share one name, or clients could fill the metrics with names. */
function knownPath(path: string): string {
  if (path.startsWith('/v1/models/')) return '/v1/models/{id}';
  return path in METHODS ? path : 'unmatched';
}
