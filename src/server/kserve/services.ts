import type { Platform } from '../inferring/platform.js';
import type { Metrics } from '../metrics/metrics.js';
import type { TraceDecisions } from '../tracing/trace-settings.js';
import type { ApiKeys, Caller } from '../web/access/api-keys.js';
import type { EventStreamOptions } from '../web/event-stream.js';
import type { ExchangeServices } from '../web/exchange.js';
import type { RequestMemory } from '../web/memory/request-memory.js';
import type { LogControl } from '../web/server-log.js';
import type { ServerState } from '../web/server-state.js';

/** Services of the routes of the Open Inference Protocol. */
export interface KserveServices extends ExchangeServices {
  /** The protocol's server; null: its routes are not there. */
  platform: Platform | null;
  state: ServerState;
  metrics: Metrics;
  apiKeys: ApiKeys;
  eventStream: EventStreamOptions;
  /** What is logged. */
  logControl: LogControl;
  /** Which requests are traced; null: there is no tracing. */
  traceDecisions: TraceDecisions | null;
  /** Opens an account of memory for work that outlives its request. */
  openMemory: (caller: Caller) => RequestMemory;
  /** Bytes of the longest body. */
  maxBodyBytes: number;
  version: string;
}
