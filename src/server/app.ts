import { randomUUID } from 'node:crypto';
import { type Context, Hono } from 'hono';

import { cors } from 'hono/cors';
import { requireApiKey } from './auth.js';
import { bodyLimit } from './body-limit.js';
import type { ServerMetrics } from './metrics/server-metrics.js';
import { ApiError, shuttingDown, toApiError } from './openai/errors.js';
import type { EventStreamOptions } from './openai/event-stream.js';
import { DEFAULT_EVENT_STREAM_OPTIONS } from './openai/event-stream.js';
import { ResponseStore } from './openai/responses/response-store.js';
import { bodyTooLarge, MAX_BODY_BYTES } from './read-json.js';
import { ROUTES } from './routes/index.js';
import { handlerNames, mountRoutes, openPaths } from './routes/mount.js';
import type { AppEnv, ServerContext } from './routes/route.js';
import type { ServedModel } from './served-model.js';
import type { ServerLog } from './server-log.js';
import type { ServerState } from './server-state.js';

export interface AppOptions {
  models: readonly ServedModel[];
  state: ServerState;
  metrics: ServerMetrics;
  version: string;
  log: ServerLog;
  apiKey?: string | null;
  eventStream?: Partial<EventStreamOptions>;
}

/** Asked every few seconds by machines: their lines would bury the others. */
const PROBES: ReadonlySet<string> = new Set(['/health', '/live', '/metrics']);

/** The HTTP API as a Hono app; it knows nothing of sockets. */
export function createApp(options: AppOptions): Hono<AppEnv> {
  const { log, metrics, state } = options;
  const context: ServerContext = {
    models: options.models,
    state,
    metrics,
    version: options.version,
    log,
    responses: new ResponseStore(),
    routes: ROUTES,
    observe: (request) => metrics.observe(request),
    eventStream: { ...DEFAULT_EVENT_STREAM_OPTIONS, ...options.eventStream },
  };
  const app = new Hono<AppEnv>();
  const respondToError = (error: unknown, c: Context<AppEnv>): Response => {
    const apiError = toApiError(error);
    metrics.refused(apiError.code);
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
  app.use(requireApiKey(options.apiKey ?? null, openPaths(ROUTES)));
  app.use('/v1/*', async (c, next) => {
    if (c.req.method === 'POST' && state.status === 'draining') throw shuttingDown();
    await next();
  });
  app.use(bodyLimit({ maxSize: MAX_BODY_BYTES, onError: (c) => respondToError(bodyTooLarge(), c) }));

  mountRoutes(app, context);
  return app;
}

/** The client's X-Request-Id, where it is one, or a new one; it comes back with every answer. */
async function requestIds(c: Context<AppEnv>, next: () => Promise<void>): Promise<void> {
  const given = c.req.header('x-request-id');
  const id = given !== undefined && /^[\x21-\x7e]{1,128}$/.test(given) ? given : `req-${randomUUID()}`;
  c.set('requestId', id);
  c.header('x-request-id', id);
  await next();
  c.res.headers.set('x-request-id', id);
}

/** Counts and times each exchange up to its last byte, a stream's too, and writes the access log. */
function observeHttp(metrics: ServerMetrics, log: ServerLog) {
  const handlerOf = handlerNames(ROUTES);
  return async (c: Context<AppEnv>, next: () => Promise<void>): Promise<void> => {
    const startMs = performance.now();
    await next();
    const handler = handlerOf(c.req.path);
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
