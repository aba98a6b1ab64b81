import type { ServerResponse } from 'node:http';
import type { Context } from 'hono';
import type { TraceSpan } from '../../../callbacks/infer/trace-span.js';
import type { AppEnv } from '../web/app-env.js';
import type { Tracing } from './tracing.js';

/** Paths that machines ask every few seconds: their traces would bury the others. */
const PROBES: ReadonlySet<string> = new Set([
  '/health',
  '/live',
  '/metrics',
  '/v2/health/live',
  '/v2/health/ready',
]);

/** Those of W3C Trace Context. */
interface TraceHeaders {
  traceparent?: string | string[] | undefined;
  tracestate?: string | string[] | undefined;
}

/** A request by HTTP. Source of the attributes' names: OpenTelemetry's semantic conventions for HTTP. */
export interface TracedExchange {
  method: string;
  /** Name of its route. */
  handler: string;
  path: string;
  requestId: string;
  startMs: number;
  /** The model that its path names; '' where it names none. */
  model: string;
  headers: TraceHeaders;
}

/** The span of a request that is traced; null: it is not. */
export function beginHttpSpan(tracing: Tracing, exchange: TracedExchange): TraceSpan | null {
  const { method, handler, path, requestId, startMs, model, headers } = exchange;
  if (PROBES.has(handler)) return null;
  return tracing.begin({
    name: `${method} ${handler}`,
    startMs,
    model,
    traceparent: one(headers.traceparent),
    tracestate: one(headers.tracestate),
    attributes: {
      'http.request.method': method,
      'http.route': handler,
      'url.path': path,
      'skein.request_id': requestId,
    },
  });
}

/** Ends the span of an exchange of which the answer is decided, when its last byte is out or its client has left. */
export function endHttpSpan(span: TraceSpan, status: number, outgoing: ServerResponse | undefined): void {
  span.set({ 'http.response.status_code': status });
  if (status >= 500) span.fail(`HTTP status ${status}`);
  if (outgoing === undefined || outgoing.closed) span.end();
  else outgoing.once('close', () => span.end());
}

/** Traces the exchanges of an app. @param handlerOf the name of the route of a path */
export function traceHttp(tracing: Tracing, handlerOf: (path: string) => string) {
  return async (c: Context<AppEnv>, next: () => Promise<void>): Promise<void> => {
    const startMs = performance.now();
    const { path, method } = c.req;
    const span = beginHttpSpan(tracing, {
      method,
      handler: handlerOf(path),
      path,
      requestId: c.get('requestId'),
      startMs,
      model: /^\/v2\/models\/([^/]+)/.exec(path)?.[1] ?? '',
      headers: {
        traceparent: c.req.header('traceparent'),
        tracestate: c.req.header('tracestate'),
      },
    });
    if (span !== null) c.set('trace', span);
    await next();
    if (span !== null) endHttpSpan(span, c.res.status, c.env?.outgoing);
  };
}

/** A header that must come once; several are none. */
const one = (header: string | string[] | undefined) => (Array.isArray(header) ? header.join(',') : header);
