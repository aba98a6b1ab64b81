import { holdsSecret, UsageError } from '../errors/user-errors.js';
import { openTelemetry } from '../server/tracing/telemetry/open-telemetry.js';
import { findTracingPackages, TRACING_MISSING } from '../server/tracing/telemetry/packages.js';
import { TraceDecisions } from '../server/tracing/trace-settings.js';
import { Tracing } from '../server/tracing/tracing.js';
import type { ServerLog } from '../server/web/server-log.js';
import type { Config } from '../settings/config.js';

type TraceConfig = Pick<Config, 'tracing' | 'traceEndpoint' | 'traceRate'>;

/** Where receivers of OTLP over HTTP listen for traces. */
const PATH = '/v1/traces';
/** Milliseconds between two lines of the log about spans that could not be sent. */
const COMPLAINT_MS = 60_000;

/** Holds the options of tracing against what is there, before anything costly is done. @throws UsageError */
export function checkTracing(config: TraceConfig): void {
  if (!isWanted(config)) return;
  traceUrl(config);
  if (findTracingPackages() === null) throw new UsageError(TRACING_MISSING);
}

/** null: nothing is traced. @throws UsageError */
export function openTracing(
  config: TraceConfig,
  log: Pick<ServerLog, 'warn'>,
  version: string,
): Tracing | null {
  if (!isWanted(config)) return null;
  const load = findTracingPackages();
  if (load === null) throw new UsageError(TRACING_MISSING);
  let lastMs = Number.NEGATIVE_INFINITY;
  const onError = (err: Error) => {
    const nowMs = performance.now();
    if (nowMs - lastMs < COMPLAINT_MS) return;
    lastMs = nowMs;
    log.warn({ err }, 'traces could not be sent');
  };
  const source = openTelemetry(load, { url: traceUrl(config), version, onError });
  return new Tracing(source, new TraceDecisions({ isOn: true, rate: config.traceRate, count: -1 }));
}

function isWanted({ tracing, traceEndpoint }: TraceConfig): boolean {
  return tracing ?? traceEndpoint !== undefined;
}

/** The address of --trace-endpoint, with the usual path where it has none; null: variables of OpenTelemetry say it. */
function traceUrl({ traceEndpoint: text }: TraceConfig): string | null {
  if (text === undefined) return null;
  if (holdsSecret(text)) {
    throw new UsageError(
      '--trace-endpoint holds a user or a password; OTEL_EXPORTER_OTLP_HEADERS takes the header by which the receiver knows the server, which no log shows.',
    );
  }
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || !/^https?:$/.test(url.protocol)) {
    throw new UsageError(
      `--trace-endpoint is "${text}"; the address of a receiver of OTLP over HTTP is expected, such as http://localhost:4318.`,
    );
  }
  if (url.pathname === '/') url.pathname = PATH;
  return url.href;
}
