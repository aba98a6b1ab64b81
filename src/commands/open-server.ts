import { skeinVersion } from '../../base/package-info.js';
import type { Config, ConfiguredModel } from '../config.js';
import type { LoadedAny } from '../load-models.js';
import type { ApiKeys } from '../server/api-keys.js';
import { createApp } from '../server/app.js';
import { MemoryLedger } from '../server/held-memory.js';
import type { AllowedHosts } from '../server/host-check.js';
import { HttpServer } from '../server/http-server.js';
import { createLog } from '../server/log.js';
import type { ModelMetrics, ObservedModel } from '../server/metrics/model-metrics.js';
import { ServerMetrics } from '../server/metrics/server-metrics.js';
import type { ServedModel } from '../server/served-model.js';
import type { ServerLog } from '../server/server-log.js';
import { type ModelState, ServerState } from '../server/server-state.js';
import { heldMemoryLimitBeside } from './held-memory-limit.js';
import type { ServerSecurity } from './server-security.js';

/** The API of models that run. */
export interface ServedApp {
  app: ReturnType<typeof createApp>;
  state: ServerState;
  metrics: ServerMetrics;
  /** Resolves where an engine has failed for good. */
  failed: Promise<Error>;
}

/** A server that listens. */
export interface OpenServer {
  server: HttpServer;
  /** Resolves where an engine has failed for good. */
  failed: Promise<Error>;
}

/** A model that runs, and what was configured for it. */
export interface RunningModel {
  entry: ConfiguredModel;
  loaded: LoadedAny;
}

/** Listens for the clients of models that run; closes the models where that fails. @throws ListenError. */
export async function openServer(
  running: readonly RunningModel[],
  config: Config,
  security: ServerSecurity & { allowedHosts: AllowedHosts },
): Promise<OpenServer> {
  const { app, state, metrics, failed } = serveModels(running, config, security);
  try {
    const server = await HttpServer.listen({
      app,
      state,
      host: config.host,
      port: config.port,
      tls: security.tls,
      maxConnections: config.maxConnections,
      stallLimitMs: 1000 * config.streamStallTimeout,
      onStall: () => metrics.readerStalled(),
    });
    return { server, failed };
  } catch (error) {
    await Promise.all(running.map(({ loaded }) => loaded.close()));
    throw error;
  }
}

/** The API of models that run, without a socket. */
export function serveModels(
  running: readonly RunningModel[],
  config: Config,
  security: Pick<ServerSecurity, 'apiKeys' | 'corsOrigins'> & { allowedHosts?: AllowedHosts },
): ServedApp {
  const names = running.map(({ entry }) => entry.name);
  const state = new ServerState(names);
  const metrics = new ServerMetrics(
    running.map((model) => observedModel(model, config)),
    { process: true },
  );
  const log = createLog(config.logLevel);
  const ledger = memoryLedger(running, config, security.apiKeys);
  metrics.watchMemory(ledger);
  const failures = running.map(({ entry: { name }, loaded }) => {
    const own = { name, state: state.model(name), metrics: metrics.model(name), log };
    loaded.onStats((stats) => own.metrics.iteration(stats));
    return followEngine(loaded, own);
  });
  const app = createApp({
    models: running.map((model) => servedModel(model, config)),
    state,
    metrics,
    version: skeinVersion(),
    log,
    ...(config.accessLog ? { accessLog: createLog('info') } : {}),
    apiKeys: security.apiKeys,
    corsOrigins: security.corsOrigins,
    allowedHosts: security.allowedHosts ?? '*',
    maxBodyBytes: config.maxBodySize,
    ledger,
    requestTimeoutMs: config.requestTimeout === 0 ? null : 1000 * config.requestTimeout,
    eventStream: { stallLimitMs: 1000 * config.streamStallTimeout },
  });
  return { app, state, metrics, failed: Promise.race(failures) };
}

function memoryLedger(
  running: readonly RunningModel[],
  { maxHeldMemory, maxBodySize }: Config,
  apiKeys: ApiKeys,
): MemoryLedger {
  const loaded = running.map((model) => model.loaded);
  const limit = maxHeldMemory ?? heldMemoryLimitBeside(loaded, maxBodySize);
  return new MemoryLedger({ limit, isShared: apiKeys.count > 1 });
}

interface Followers {
  name: string;
  state: ModelState;
  metrics: ModelMetrics;
  log: ServerLog;
}

/** Lets /health, the metrics and the log know how an engine fares. The promise is of its final failure. */
function followEngine(loaded: LoadedAny, { name, state, metrics, log }: Followers): Promise<Error> {
  loaded.onError((error) => log.error({ err: error, model: name }, 'engine error'));
  const noteExecutor = () => {
    const { executor, executorFallback: fallback } = loaded.info;
    state.executor = { name: executor, fallback };
  };
  noteExecutor();
  return new Promise((resolve) => {
    loaded.onStateChange((engine, failure) => {
      if (failure !== null) metrics.engineDown();
      if (engine === 'restarting') state.restart(failure?.message ?? '');
      if (engine === 'running') {
        const before = state.executor?.fallback;
        noteExecutor();
        const { fallback } = state.executor!;
        if (fallback !== null && fallback !== before) log.error({ model: name }, fallback);
        state.recover();
        metrics.engineRestarted();
        log.info({ model: name }, 'the engine runs again');
      }
      if (engine === 'failed' && failure !== null) {
        state.fail(failure.message);
        resolve(failure);
      }
    });
  });
}

function observedModel({ entry, loaded }: RunningModel, config: Config): ObservedModel {
  const { maxQueueSize } = { ...config, ...entry.options };
  const { maxSeqLen } = loaded.info;
  const observed = { name: entry.name, maxSeqLen, gauges: loaded.counts, maxQueueSize };
  if (loaded.kind === 'encoder') return observed;
  const { tokensPerBlock, secondaryBlocks, kvDtype } = loaded.info;
  return { ...observed, tokensPerBlock, secondaryBlocks, kvDtype };
}

function servedModel({ entry, loaded }: RunningModel, config: Config): ServedModel {
  const created = Math.floor(Date.now() / 1000);
  if (loaded.kind === 'encoder') {
    return { kind: 'encoder', ...loaded.model, id: entry.name, aliases: entry.aliases, created };
  }
  const { defaultMaxTokens, maxLogprobs, toolCallParser, reasoningParser } = { ...config, ...entry.options };
  const { model, info, resetCache, onStats, statsJson, watchFormation } = loaded;
  return {
    kind: 'generator',
    ...model,
    id: entry.name,
    aliases: entry.aliases,
    created,
    fingerprint: info.fingerprint,
    resetCache,
    watch: { onStats, statsJson, watchFormation },
    defaultMaxTokens,
    toolCallParser,
    reasoningParser,
    maxLogProbs: maxLogprobs < 0 ? model.vocabSize : maxLogprobs,
  };
}
