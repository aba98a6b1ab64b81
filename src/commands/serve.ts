import { skeinVersion } from '../../engine/package-info.js';
import type { Config } from '../config.js';
import { type LoadedModel, loadModel, type ModelInfo } from '../load-model.js';
import { createApp } from '../server/app.js';
import { checkAddress, HttpServer } from '../server/http-server.js';
import { createLog } from '../server/log.js';
import { ServerMetrics } from '../server/metrics.js';
import type { ServedModel } from '../server/served-model.js';
import { ServerState } from '../server/server-state.js';
import { showBuildProgress } from './build-progress.js';

/** skein serve: runs until SIGTERM or SIGINT. @throws ListenError, CheckpointError, EngineError, AddonError. */
export async function serve(config: Config): Promise<void> {
  await checkAddress(config.host, config.port);
  const loading = new AbortController();
  const stopLoading = () => loading.abort(new Error('Interrupted while loading.'));
  process.once('SIGINT', stopLoading).once('SIGTERM', stopLoading);
  const loaded = await loadModel({
    ...config,
    onProgress: showBuildProgress(process.stderr),
    signal: loading.signal,
  });
  process.off('SIGINT', stopLoading).off('SIGTERM', stopLoading);
  const state = new ServerState();
  const served = servedModel(loaded, config);
  const metrics = new ServerMetrics({
    modelName: served.id,
    maxSeqLen: served.maxSeqLen,
    gauges: () => loaded.counts(),
  });
  loaded.onStats((stats) => metrics.iteration(stats));
  loaded.onFailure((error) => state.fail(error.message));
  const app = createApp({
    models: [served],
    state,
    metrics,
    version: skeinVersion(),
    log: createLog(config.logLevel),
    apiKey: config.apiKey ?? null,
  });
  let server: HttpServer;
  try {
    server = await HttpServer.listen({ app, state, host: config.host, port: config.port });
  } catch (error) {
    await loaded.close();
    throw error;
  }
  process.stdout.write(greeting(served.id, server.url, loaded.info));
  await untilSignal();
  process.stderr.write('skein: finishing the answers under way; a second signal ends at once\n');
  const drained = await server.drain(config.drainTimeout * 1000);
  if (!drained)
    process.stderr.write(`skein: some answers took longer than ${config.drainTimeout} s and are cut off\n`);
  await server.close();
  await loaded.close({ abort: true });
}

function servedModel({ model, info }: LoadedModel, config: Config): ServedModel {
  return {
    ...model,
    id: config.servedModelName ?? info.name,
    created: Math.floor(Date.now() / 1000),
    fingerprint: info.fingerprint,
    defaultMaxTokens: config.defaultMaxTokens,
  };
}

function greeting(id: string, url: string, info: ModelInfo): string {
  const lines = [
    `skein ${skeinVersion()} serves ${id} at ${url}/v1`,
    `  ${info.executor} executor on ${info.instructionSet}, ${info.threads} threads`,
    `  weights ${info.weights}, KV cache of ${info.kvTokens} tokens in ${info.kvDtype}, context of ${info.maxSeqLen} tokens`,
  ];
  return `${lines.join('\n')}\n`;
}

/** Resolves at the first signal; the second ends the process where it stands. */
function untilSignal(): Promise<void> {
  return new Promise((resolve) => {
    let signals = 0;
    for (const [signal, number] of [
      ['SIGINT', 2],
      ['SIGTERM', 15],
    ] as const) {
      process.on(signal, () => {
        signals++;
        if (signals > 1) process.exit(128 + number);
        resolve();
      });
    }
  });
}
