import type { PoolWeights } from '../../../cluster/routing/pool-weights.js';
import type { ModelLife } from '../answering/model-life.js';
import type { AnsweringServices } from '../answering/services.js';
import type { Batches } from '../batches/batches.js';
import type { ModelFeeds } from '../feeds/model-feeds.js';
import type { RepositoryFeed } from '../feeds/repository-feed.js';
import type { FileStore } from '../files/file-store.js';
import type { Platform } from '../inferring/platform.js';
import type { Metrics } from '../metrics/metrics.js';
import type { ResponseStore } from '../openai/responses/response-store.js';
import type { TraceDecisions } from '../tracing/trace-settings.js';
import type { ApiKeys, Caller } from '../web/access/api-keys.js';
import type { RequestMemory } from '../web/memory/request-memory.js';
import type { Quotas } from '../web/quotas/quotas.js';
import type { Route, RouteServices } from '../web/route.js';
import { routesWith } from '../web/route.js';
import type { LogControl } from '../web/server-log.js';
import type { ServerState } from '../web/server-state.js';

/** A route of this server. */
export type ServerRoute = Route<ServerContext>;

/** All services of the server; each protocol declares those that its routes need. */
export interface ServerContext extends RouteServices, AnsweringServices {
  state: ServerState;
  metrics: Metrics;
  version: string;
  /** What is logged. */
  logControl: LogControl;
  responses: ResponseStore;
  /** Opens an account of memory for work that outlives its request. */
  openMemory: (caller: Caller) => RequestMemory;
  apiKeys: ApiKeys;
  /** Limits of these keys, and what they have taken. */
  quotas: Quotas;
  /** Feeds of all models that generate text. */
  feeds: ModelFeeds;
  /** Feed of all models of the repository, whatever they take. */
  repositoryFeed: RepositoryFeed;
  /** Bytes of the longest body. */
  maxBodyBytes: number;
  /** The Open Inference Protocol's server; null: its routes are not there. */
  platform: Platform | null;
  /** Which requests are traced; null: there is no tracing. */
  traceDecisions: TraceDecisions | null;
  /** Folder of the LoRA adapters that clients may load; null: they may load none. */
  adapterFolder: string | null;
  /** Models that are loaded on demand; null: there are none. */
  life: ModelLife | null;
  /** How a gateway shares new requests among engines; null: the models are here. */
  poolWeights: PoolWeights | null;
  /** Files of clients. */
  files: FileStore;
  batches: Batches;
  /** All routes, for the description of the API. */
  routes: readonly ServerRoute[];
}

/** Routes of the server itself, and those in which protocols meet. */
export const defineRoute = routesWith<ServerContext>();
