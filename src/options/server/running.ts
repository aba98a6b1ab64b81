import { MAX_INT32 } from '../../../base/int32.js';
import { NAME, oneOf, SWITCH, wholeNumber } from '../../../base/option-values.js';
import { DAY_SECONDS, OF_CLIENTS, ofServer } from './server-option.js';

/** Options of how the server starts, ends, logs and is watched. */
export const RUNNING_OPTIONS = {
  drainTimeoutSeconds: ofServer(
    wholeNumber(0, DAY_SECONDS),
    {
      group: 'Running',
      unit: 'seconds',
      formerly: 'drainTimeout',
      default: 30,
      help: 'How long running answers may continue after SIGTERM or SIGINT.',
    },
    OF_CLIENTS,
  ),
  exitOnFailure: ofServer(
    SWITCH,
    {
      group: 'Running',
      default: true,
      help: 'Exit when no model runs and none can be restarted. --no-exit-on-failure: keep running and answer 503.',
    },
    OF_CLIENTS,
  ),
  accessLog: ofServer(
    SWITCH,
    {
      group: 'Running',
      default: false,
      help: 'Log a line for each request, whatever --log-level is: model, status, tokens, times; never the text of a prompt.',
    },
    OF_CLIENTS,
  ),
  tracing: ofServer(
    SWITCH,
    {
      group: 'Running',
      help: 'Send traces by OpenTelemetry. Without --trace-endpoint the OTEL_EXPORTER_OTLP_... variables say where to ("skein setup tracing" installs what it needs).',
      defaultText: 'on with --trace-endpoint',
    },
    OF_CLIENTS,
  ),
  traceEndpoint: ofServer(
    NAME,
    {
      group: 'Running',
      metavar: 'URL',
      aliases: ['otlpTracesEndpoint'],
      help: 'OTLP receiver of traces, such as http://localhost:4318. /v1/traces is added to an address without a path.',
      defaultText: 'none',
    },
    OF_CLIENTS,
  ),
  traceRate: ofServer(
    wholeNumber(0, MAX_INT32),
    {
      group: 'Running',
      unit: 'requests',
      default: 1,
      help: 'Trace one of this many requests, besides those that their client traces. 0: only the latter.',
    },
    OF_CLIENTS,
  ),
  metrics: ofServer(
    SWITCH,
    {
      group: 'Running',
      default: true,
      help: 'Serve Prometheus metrics at /metrics. --no-metrics: count nothing.',
    },
    OF_CLIENTS,
  ),
  logLevel: ofServer(oneOf('trace', 'debug', 'info', 'warn', 'error', 'silent'), {
    group: 'Running',
    isCommon: true,
    metavar: 'LEVEL',
    default: 'warn',
    help: 'Log level. info: also a line per request, and one every 10 seconds while a model works; debug: also /health, /live and /metrics.',
  }),
  logFormat: ofServer(
    oneOf('json', 'text'),
    {
      group: 'Running',
      default: 'json',
      help: 'Format of the log lines: json for programs, text for people.',
    },
    OF_CLIENTS,
  ),
  logFile: ofServer(
    NAME,
    {
      group: 'Running',
      metavar: 'FILE',
      help: 'File for the log. Warnings and errors go to stderr too; SIGHUP reopens it, for log rotation.',
      defaultText: 'stderr',
    },
    OF_CLIENTS,
  ),
};
