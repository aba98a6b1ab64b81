import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Context } from 'hono';
import type { Metrics } from '../metrics/metrics.js';
import { AccessTally, microseconds } from '../web/access-tally.js';
import type { AppEnv } from '../web/app-env.js';
import type { PromptParting } from '../web/prompt-parting.js';
import type { ServerLog } from '../web/server-log.js';
import { upgradeOf } from '../web/upgrade.js';
import { handlerNames } from './mount.js';
import type { ServerRoute } from './server-context.js';

/** Paths that machines ask every few seconds: their lines would bury the others. */
const PROBES: ReadonlySet<string> = new Set(['/health', '/live', '/metrics']);

/** An exchange of which the answer is decided. */
export interface ObservedExchange {
  startMs: number;
  /** Name of its route in the metrics. */
  handler: string;
  method: string;
  path: string;
  status: number;
  requestId: string;
  /** Name of the caller's key. */
  key: string;
  /** The model that its path names; absent: it names none. */
  model?: string | undefined;
  /** What models computed for it. */
  tally: AccessTally;
  /** Where its prompt parted from an earlier one. */
  parting?: PromptParting | undefined;
  incoming: IncomingMessage | undefined;
  outgoing: ServerResponse | undefined;
}

/** Counts and times each exchange up to its last byte, even of a stream, and writes the access log. */
export function observeHttp(metrics: Metrics, log: ServerLog, routes: readonly ServerRoute[]) {
  const handlerOf = handlerNames(routes);
  return async (c: Context<AppEnv>, next: () => Promise<void>): Promise<void> => {
    const startMs = performance.now();
    const tally = new AccessTally(startMs);
    c.set('tally', tally);
    await next();
    observeExchange(metrics, log, {
      startMs,
      handler: handlerOf(c.req.path),
      method: c.req.method,
      path: c.req.path,
      status: c.res.status,
      requestId: c.get('requestId'),
      key: c.get('caller')?.name ?? '',
      model: /^\/v2\/models\/([^/]+)/.exec(c.req.path)?.[1],
      tally,
      parting: c.get('parting'),
      incoming: c.env?.incoming,
      outgoing: c.env?.outgoing,
    });
  };
}

/** Counts and logs an exchange when its last byte is out, or its client has left. */
export function observeExchange(metrics: Metrics, log: ServerLog, exchange: ObservedExchange): void {
  const { startMs, handler, method, path, requestId, key, model, tally, parting, incoming, outgoing } =
    exchange;
  const isUpgraded = upgradeOf(incoming)?.isAccepted === true;
  const status = isUpgraded ? 101 : exchange.status;
  // A connection that is closed has no address any more.
  const remote = incoming?.socket.remoteAddress ?? '';
  const record = () => {
    const durationMs = performance.now() - startMs;
    metrics.httpRequest({ handler, method, status, durationMs });
    const fields = {
      requestId,
      key,
      remote,
      method,
      path,
      route: handler,
      status,
      ...(model === undefined ? {} : { model }),
      ...tally.fields(),
      ...(parting === undefined ? {} : { partedAt: parting.at, repeatedTokens: parting.repeated }),
      durationMs: microseconds(durationMs),
      // false where the client left before the last byte.
      isWhole: isUpgraded || (outgoing?.writableFinished ?? true),
    };
    if (PROBES.has(handler)) log.debug(fields, 'request');
    else log.info(fields, 'request');
  };
  if (outgoing === undefined || outgoing.closed) record();
  else outgoing.once('close', record);
}
