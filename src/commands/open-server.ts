import { skeinVersion } from '../../base/package-info.js';
import { DEFAULT_MAX_NUM_SEQUENCES } from '../../callbacks/options/optional-params.js';
import type { PoolWeights } from '../../cluster/routing/pool-weights.js';
import { EngineFailure } from '../../host/engine-failure.js';
import { lateFetcher } from '../generation/pictures/fetch/late-fetcher.js';
import { rateLimitResources } from '../options/rate-limit-resources.js';
import { mcpUrls } from '../options/server/requests.js';
import { promptRulesWithout } from '../prompt-rules.js';
import type { ModelLife } from '../server/answering/model-life.js';
import { createApp } from '../server/app/app.js';
import { followRequests } from '../server/app/follow-requests.js';
import { heldMemoryLimitBeside } from '../server/app/held-memory-limit.js';
import { Batches } from '../server/batches/batches.js';
import { FileStore } from '../server/files/file-store.js';
import type { SharedStores } from '../server/files/record-store.js';
import type { GrpcServer, GrpcServerOptions } from '../server/grpc/grpc-server.js';
import type { ListenerOptions } from '../server/grpc/wire/grpc-listener.js';
import { HttpServer } from '../server/listening/http-server.js';
import { InferLane } from '../server/listening/infer-lane.js';
import { logActivity } from '../server/logs/activity-log.js';
import { Log } from '../server/logs/log.js';
import { LogOutput } from '../server/logs/log-output.js';
import { logEngines } from '../server/logs/model-log.js';
import { McpServers } from '../server/mcp/mcp-servers.js';
import { ServerMetrics } from '../server/metrics/families/server-metrics.js';
import { type Metrics, NO_METRICS } from '../server/metrics/metrics.js';
import type { Targets } from '../server/metrics/scaling/desired-workers.js';
import { DEFAULT_STORE_LIMITS } from '../server/openai/responses/response-store.js';
import { ResponseTasks } from '../server/openai/responses/response-tasks.js';
import { SharedPlace } from '../server/openai/responses/shared-place.js';
import type { HttpSocket } from '../server/sockets/http-socket.js';
import type { Tracing } from '../server/tracing/tracing.js';
import type { ApiKeys } from '../server/web/access/api-keys.js';
import type { AllowedHosts } from '../server/web/access/host-check.js';
import { MemoryLedger } from '../server/web/memory/held-memory.js';
import type { QuotaRecords } from '../server/web/quotas/quota-records.js';
import { Quotas } from '../server/web/quotas/quotas.js';
import { ServerState } from '../server/web/server-state.js';
import { ResponseCache } from '../serving/cache/response-cache.js';
import type { ExpectedModels } from '../serving/expected-models.js';
import { followModels, LiveModels, type ModelDirectory } from '../serving/model-directory.js';
import { RateLimits } from '../serving/rate-limits.js';
import type { ServingRepository } from '../serving/repository/serving-repository.js';
import type { ObserveRequest } from '../serving/request-observer.js';
import type { RunningModel } from '../serving/running-model.js';
import type { ServedModel } from '../serving/served-model.js';
import { SharedRegions } from '../serving/shared-memory/shared-regions.js';
import type { Config, ConfiguredModel } from '../settings/config.js';
import { type Around, modelRepository } from './model-repository.js';
import { onDemand } from './on-demand.js';
import { openTracing } from './open-tracing.js';
import { reload } from './reload.js';
import { type LoadedEntry, servedModelOf } from './served-model-of.js';
import type { ServerSecurity } from './server-security.js';

/** The API of running models. */
export interface ServedApp {
  models: LiveModels;
  /** The same models, and those that take tensors alone; it owns them, and closes them. */
  repository: ServingRepository;
  /** What models that are added later receive, and report to. */
  around: Around;
  /** Models that are loaded on demand; null: there are none. */
  life: ModelLife | null;
  /** Batches of clients, to be started when there are models to ask. */
  batches: Batches;
  /** Responses in the background that other servers share, to be started with the batches; null: there are none. */
  tasks: ResponseTasks | null;
  app: ReturnType<typeof createApp>;
  lane: InferLane;
  state: ServerState;
  metrics: Metrics;
  /** Resolves with the error when no engine is left that has not failed for good. */
  failed: Promise<Error>;
  /** What a server of another protocol needs to answer for the same models. */
  shared: SharedServices;
}

/** What all protocols of a server share. */
export type SharedServices = Omit<GrpcServerOptions, keyof ListenerOptions | 'version' | 'stallLimitMs'> & {
  quotas: Quotas;
};

/** Milliseconds between two words about what keys have taken, to those who share their limits: as much of it is lost with a gateway. */
const QUOTA_FLUSH_MS = 5_000;

/** A listening server. */
export interface OpenServer extends Pick<ServedApp, 'repository' | 'around' | 'life' | 'batches' | 'tasks'> {
  server: HttpServer;
  /** The same models over gRPC; null: that is not wanted. */
  grpc: GrpcServer | null;
  /** Does what SIGHUP asks for: see reload. */
  reload: () => void;
  /** Sends what was not sent yet of traces, and of what keys have taken. */
  flush: () => Promise<void>;
  /** Resolves where no engine is left that has not failed for good. */
  failed: Promise<Error>;
}

/**
 * Listens for clients of running models; closes the models if that fails.
 * @param early socket that has said that they are being loaded; null: none has @param brought models that come later @throws ListenError
 */
export async function openServer(
  running: readonly LoadedEntry[],
  config: Config,
  security: ServerSecurity & { allowedHosts: AllowedHosts },
  early: HttpSocket | null = null,
  brought: BroughtModels = NOT_BROUGHT,
): Promise<OpenServer> {
  const output = new LogOutput(config.logFile, config.logFormat);
  const log = new Log(config.logLevel, output);
  const tracing = openTracing(config, log, skeinVersion());
  const served = serveModels(running, config, security, { log, output, tracing, brought });
  const { repository, around, life, batches, tasks, app, lane, state, metrics, failed, shared } = served;
  const { host, maxConnections, streamStallTimeoutSeconds } = config;
  const { tls } = security;
  const address = { host, tls, maxConnections, stallLimitMs: 1000 * streamStallTimeoutSeconds };
  let grpc: GrpcServer | null = null;
  try {
    if (config.grpcPort !== undefined) {
      const { GrpcServer } = await import('../server/grpc/grpc-server.js');
      grpc = await GrpcServer.listen({
        ...shared,
        ...address,
        port: config.grpcPort,
        maxStreams: config.maxGrpcStreams,
        version: skeinVersion(),
      });
    }
    const server = await HttpServer.listen({
      ...address,
      socket: early ?? undefined,
      app,
      lane,
      state,
      maxMessageBytes: config.maxBodyBytes,
      port: config.port,
      onStall: () => metrics.readerStalled(),
      onFewFiles: (limit) =>
        log.error(
          { limit },
          'nearly as many files are open as may be: new connections are refused; raise ulimit -n, or lower --max-connections',
        ),
    });
    const servers = grpc === null ? [server] : [server, grpc];
    const again = () => reload({ config, output, log, apiKeys: security.apiKeys, servers });
    const telling = setInterval(() => void shared.quotas.flush(), QUOTA_FLUSH_MS).unref();
    const flush = async () => {
      clearInterval(telling);
      await Promise.all([tracing?.close(), shared.quotas.flush(true)]);
    };
    return { server, grpc, repository, around, life, batches, tasks, reload: again, flush, failed };
  } catch (error) {
    await Promise.all([repository.close({}), grpc?.close()]);
    throw error;
  }
}

/** Models that others bring while the server listens already. */
export interface BroughtModels {
  /** Names of those that belong to its start, and have not come yet; null: the start is over. */
  starting: () => readonly string[] | null;
  /** What it does where it knows no names yet, as a clause. */
  isLooking?: string;
  /** Models that are known by name alone; absent: there are none. */
  expected?: ExpectedModels;
  /** Why no worker for them can be reached, as a clause; null: one can. */
  whyCutOff?: () => string | null;
  /** They are workers' models, whose requests are sent where they are cached: there are metrics of that. Absent: the models are here. */
  isRouted?: boolean;
  /**
   * Times to which those of its requests are held, to compute how many workers there should be; absent: none.
   */
  targets?: Targets | undefined;
  /** How new requests are shared among their engines, which admins may change. Absent: the models are here. */
  poolWeights?: PoolWeights;
  /** What it shares with other servers; default: nothing. */
  shared?: SharedStores | null;
  /** Where the limits of keys are shared with other servers. Default: they are this server's alone. */
  quotaRecords?: QuotaRecords;
}

const NOT_BROUGHT: BroughtModels = { starting: () => null };

/** Receivers of what the server does. */
export interface Observers {
  output?: LogOutput;
  log?: Log;
  tracing?: Tracing | null;
  brought?: BroughtModels;
}

/** Makes the API of running models, without a socket. */
export function serveModels(
  running: readonly LoadedEntry[],
  config: Config,
  security: Pick<ServerSecurity, 'apiKeys' | 'corsOrigins'> & { allowedHosts?: AllowedHosts },
  {
    output = new LogOutput(),
    log = new Log(config.logLevel, output),
    tracing = null,
    brought = NOT_BROUGHT,
  }: Observers = {},
): ServedApp {
  const models = new LiveModels(brought.expected);
  for (const { entry, loaded } of running) {
    loaded.onError((error) => log.error({ err: error, model: entry.name }, 'engine error'));
  }
  const describe = (entry: ConfiguredModel, loaded: RunningModel) => servedModelOf({ entry, loaded }, config);
  const observe: ObserveRequest = followRequests({ observe: (request) => metrics.observe(request) });
  const cache = config.responseCacheBytes > 0 ? new ResponseCache(config.responseCacheBytes) : null;
  const limits = rateLimitsOf(config);
  const repository = modelRepository(running, config, models, { describe, log, observe }, { cache, limits });
  const engines = { models, repository, running: running.map(({ loaded }) => loaded) };
  const life = onDemand(config, { ...engines, describe, log, observe });
  logEngines(models, log);
  logActivity(models, log);
  const state = new ServerState(
    models,
    () => brought.starting() ?? repository.starting,
    brought.isLooking,
    brought.whyCutOff,
  );
  const ledger = memoryLedger(running, config, security.apiKeys);
  const quotas = new Quotas(brought.quotaRecords);
  const tools = toolServers(config, log);
  const metrics = config.metrics
    ? metricsOf(models, { ledger, quotas, tools }, repository, { cache, limits }, brought)
    : NO_METRICS;
  const stallLimitMs = 1000 * config.streamStallTimeoutSeconds;
  const shared = {
    state,
    metrics,
    log,
    accessLog: config.accessLog ? new Log('info', output) : log,
    logControl: log,
    tracing,
    apiKeys: security.apiKeys,
    quotas,
    allowedHosts: security.allowedHosts ?? '*',
    maxBodyBytes: config.maxBodyBytes,
    ledger,
    platform: {
      repository,
      serverId: config.serverId,
      allowsUpload: config.allowModelUpload,
      sharedMemory: sharedMemory(config),
    },
    adapterFolder: config.loraDir ?? null,
    requestTimeoutMs: config.requestTimeoutSeconds === 0 ? null : 1000 * config.requestTimeoutSeconds,
  };
  const { files, batches } = filesAndBatches(config, security.apiKeys, log, brought.shared ?? null);
  const sharedResponses = brought.shared ? responsesOf(brought.shared, security.apiKeys, log) : undefined;
  const app = createApp({
    ...shared,
    files,
    batches,
    shared: sharedResponses,
    models,
    version: skeinVersion(),
    corsOrigins: security.corsOrigins,
    unknownFields: config.unknownFields,
    trustsTemplates: config.trustRequestChatTemplate,
    promptRules: promptRulesWithout(config.withoutPromptRule),
    fetchedPictures: config.allowImageUrls
      ? lateFetcher({ isShared: () => security.apiKeys.isShared })
      : null,
    toolServers: tools,
    eventStream: { stallLimitMs },
    life,
    poolWeights: brought.poolWeights ?? null,
  });
  const lane = new InferLane({ ...shared, stallLimitMs });
  // A model on demand that fails is unloaded, and reloaded for the next request.
  const failed = lastFailure(models, (model) => life?.models.owns(model) === true);
  const tasks = sharedResponses?.tasks ?? null;
  const around = { describe, log, observe };
  return { models, repository, around, life, batches, tasks, app, lane, state, metrics, failed, shared };
}

function responsesOf({ responses, presence, files }: SharedStores, apiKeys: ApiKeys, log: Log) {
  return {
    place: new SharedPlace(responses, presence, DEFAULT_STORE_LIMITS),
    tasks: new ResponseTasks({ records: responses, contents: files.contents, presence, apiKeys, log }),
  };
}

/** What clients store, and have answered from it. */
function filesAndBatches(
  config: Config,
  apiKeys: ApiKeys,
  log: Log,
  shared: SharedStores | null,
): { files: FileStore; batches: Batches } {
  const { maxActiveRequests = DEFAULT_MAX_NUM_SEQUENCES } = config;
  const files = new FileStore({
    folder: config.filesDir ?? null,
    shared: shared?.files ?? null,
    limits: {
      maxFileBytes: config.maxFileBytes,
      maxBytes: config.maxFilesBytes,
      maxFiles: config.maxFiles,
    },
    isShared: () => apiKeys.isShared,
  });
  const batches = new Batches({
    files,
    log,
    apiKeys,
    // The other half is free for clients that wait.
    maxRequests: config.maxOfflineRequests ?? Math.max(1, Math.floor(maxActiveRequests / 2)),
    maxLineBytes: config.maxBodyBytes,
    shared: shared === null ? undefined : { records: shared.batches, presence: shared.presence },
  });
  return { files, batches };
}

/** MCP servers that requests may use. */
function toolServers({ mcpServer, mcpTimeoutSeconds }: Config, log: Log): McpServers | null {
  return mcpServer === undefined ? null : new McpServers(mcpUrls(mcpServer), 1000 * mcpTimeoutSeconds, log);
}

/** Shared memory of clients on this machine, where they may use it. */
function sharedMemory(config: Config): SharedRegions | null {
  if (!config.allowSharedMemory) return null;
  return new SharedRegions({
    maxRegions: config.maxSharedMemoryRegions,
    maxRegionBytes: config.maxSharedMemoryRegionBytes,
    maxBytes: config.maxSharedMemoryBytes,
  });
}

function metricsOf(
  models: LiveModels,
  { ledger, quotas, tools }: { ledger: MemoryLedger; quotas: Quotas; tools: McpServers | null },
  repository: ServingRepository,
  { cache, limits }: { cache: ResponseCache | null; limits: RateLimits | null },
  { isRouted, targets }: BroughtModels,
): Metrics {
  const ofQueue = isRouted === undefined ? {} : { routing: isRouted, targets };
  const metrics = new ServerMetrics(models, { process: true, ...ofQueue });
  metrics.watchMemory(ledger);
  metrics.watchKeys(quotas);
  if (tools !== null) metrics.watchTools(tools);
  metrics.watchInference(() => repository.loaded(), { cache, limits });
  return metrics;
}

/** null: rates are not limited. */
function rateLimitsOf({ rateLimit, rateLimitResource = [] }: Config): RateLimits | null {
  return rateLimit === 'off' ? null : new RateLimits(rateLimitResources(rateLimitResource));
}

function memoryLedger(
  running: readonly LoadedEntry[],
  { maxHeldMemoryBytes, maxBodyBytes }: Config,
  apiKeys: ApiKeys,
): MemoryLedger {
  const loaded = running.map((model) => model.loaded);
  const limit = maxHeldMemoryBytes ?? heldMemoryLimitBeside(loaded, maxBodyBytes);
  return new MemoryLedger({ limit, isShared: () => apiKeys.isShared });
}

/**
 * Resolves once no model is left that runs or may run again: with the error of the last engine that failed for good, which names the
 * model where there are several.
 */
function lastFailure(models: ModelDirectory, mayFail: (model: ServedModel) => boolean): Promise<Error> {
  return new Promise((resolve) => {
    followModels(models, ({ model }) => {
      const { id, state } = model;
      const { status, failure } = state;
      if (status !== 'failed' || failure === null || mayFail(model)) return;
      const all = models.list();
      if (all.some((one) => one.state.status !== 'failed')) return;
      const isOnly = all.every((one) => one.id === id);
      resolve(
        isOnly ? failure : new EngineFailure(`The model ${id}: ${failure.message}`, { cause: failure }),
      );
    });
  });
}
