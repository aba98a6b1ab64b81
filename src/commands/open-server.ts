import { skeinVersion } from '../../engine/package-info.js';
import type { Config } from '../config.js';
import type { LoadedModel } from '../load-model.js';
import { createApp } from '../server/app.js';
import { HttpServer } from '../server/http-server.js';
import { createLog } from '../server/log.js';
import { ServerMetrics } from '../server/metrics.js';
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
  const metrics = new ServerMetrics({
    modelName: served.id,
    maxSeqLen: served.maxSeqLen,
    gauges: () => loaded.counts(),
  });
  loaded.onStats((stats) => metrics.iteration(stats));
  const log = createLog(config.logLevel);
  const failed = followEngine(loaded, { state, metrics, log });
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
  { state, metrics, log }: { state: ServerState; metrics: ServerMetrics; log: ServerLog },
): Promise<Error> {
  loaded.onError((error) => log.error({ err: error }, 'engine error'));
  return new Promise((resolve) => {
    loaded.onStateChange((engine, failure) => {
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

function servedModel({ model, info }: LoadedModel, config: Config): ServedGenerator {
  return {
    kind: 'generator',
    ...model,
    id: config.servedModelName ?? info.name,
    aliases: [],
    created: Math.floor(Date.now() / 1000),
    fingerprint: info.fingerprint,
    defaultMaxTokens: config.defaultMaxTokens,
  };
}
