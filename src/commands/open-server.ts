import { skeinVersion } from '../../engine/package-info.js';
import type { Config } from '../config.js';
import type { LoadedModel } from '../load-model.js';
import { createApp } from '../server/app.js';
import { HttpServer } from '../server/http-server.js';
import { createLog } from '../server/log.js';
import type { ModelMetrics, ObservedModel } from '../server/metrics/model-metrics.js';
import { ServerMetrics } from '../server/metrics/server-metrics.js';
import type { ServedGenerator } from '../server/served-model.js';
import type { ServerLog } from '../server/server-log.js';
import { ServerState } from '../server/server-state.js';

/** A server that listens. */
export interface OpenServer {
  server: HttpServer;
  /** The name that clients ask for. */
  modelName: string;
  /** Resolves where the engine has failed for good. */
  failed: Promise<Error>;
}

/** Listens for the clients of a model that runs; closes the model where that fails. @throws ListenError. */
export async function openServer(loaded: LoadedModel, config: Config): Promise<OpenServer> {
  const state = new ServerState();
  const served = servedModel(loaded, config);
  const metrics = new ServerMetrics([observedModel(served.id, loaded, config)], { process: true });
  const modelMetrics = metrics.model(served.id);
  loaded.onStats((stats) => modelMetrics.iteration(stats));
  const log = createLog(config.logLevel);
  const failed = followEngine(loaded, { state, metrics: modelMetrics, log });
  const app = createApp({
    models: [served],
    state,
    metrics,
    version: skeinVersion(),
    log,
    apiKey: config.apiKey ?? null,
  });
  try {
    const server = await HttpServer.listen({ app, state, host: config.host, port: config.port });
    return { server, modelName: served.id, failed };
  } catch (error) {
    await loaded.close();
    throw error;
  }
}

/** Lets /health, the metrics and the log know how the engine fares. The promise is of its final failure. */
function followEngine(
  loaded: LoadedModel,
  { state, metrics, log }: { state: ServerState; metrics: ModelMetrics; log: ServerLog },
): Promise<Error> {
  loaded.onError((error) => log.error({ err: error }, 'engine error'));
  return new Promise((resolve) => {
    loaded.onStateChange((engine, failure) => {
      if (failure !== null) metrics.engineDown();
      if (engine === 'restarting') state.restart(failure?.message ?? '');
      if (engine === 'running') {
        state.recover();
        metrics.engineRestarted();
        log.info({}, 'the engine runs again');
      }
      if (engine === 'failed' && failure !== null) {
        state.fail(failure.message);
        resolve(failure);
      }
    });
  });
}

function observedModel(name: string, { info, counts }: LoadedModel, config: Config): ObservedModel {
  const { maxSeqLen, tokensPerBlock, secondaryBlocks, kvDtype } = info;
  const { maxQueueSize } = config;
  return { name, maxSeqLen, gauges: counts, maxQueueSize, tokensPerBlock, secondaryBlocks, kvDtype };
}

function servedModel({ model, info }: LoadedModel, config: Config): ServedGenerator {
  return {
    kind: 'generator',
    ...model,
    id: config.servedModelName ?? info.name,
    aliases: [],
    created: Math.floor(Date.now() / 1000),
    fingerprint: info.fingerprint,
    defaultMaxTokens: config.defaultMaxTokens,
    toolCallParser: config.toolCallParser,
    reasoningParser: config.reasoningParser,
  };
}
