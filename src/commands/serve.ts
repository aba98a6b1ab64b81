import { skeinVersion } from '../../engine/package-info.js';
import type { Config } from '../config.js';
import { withFlagNames } from '../flag-names.js';
import { type LoadedModel, loadModel, type ModelInfo } from '../load-model.js';
import { createApp, type ServerLog } from '../server/app.js';
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
  }).catch(namedAsFlags);
  process.off('SIGINT', stopLoading).off('SIGTERM', stopLoading);
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
  let server: HttpServer;
  try {
    server = await HttpServer.listen({ app, state, host: config.host, port: config.port });
  } catch (error) {
    await loaded.close();
    throw error;
  }
  process.stdout.write(greeting(served.id, server.url, loaded.info));
  const failure = await Promise.race([untilSignal(), ...(config.exitOnFailure ? [failed] : [])]);
  if (failure === null) {
    process.stderr.write('skein: finishing the answers under way; a second signal ends at once\n');
    if (!(await server.drain(config.drainTimeout * 1000))) {
      process.stderr.write(`skein: some answers took longer than ${config.drainTimeout} s and are cut off\n`);
    }
  }
  await end(server, loaded, failure);
}

/** What the engine refuses, in the words of who started the server. */
function namedAsFlags(error: unknown): never {
  if (error instanceof Error) error.message = withFlagNames(error.message);
  throw error;
}

/** How long an answer that is cut off, or failed, may take to say so to its client. */
const LAST_WORDS_MS = 3_000;
/** How long the engine may take to end. */
const ENGINE_END_MS = 5_000;

/** What still runs is cancelled, its clients are told, and the engine is freed. Throws the failure, if there is one. */
async function end(server: HttpServer, loaded: LoadedModel, failure: Error | null): Promise<void> {
  const closed = loaded.close({ abort: true, terminateAfterMs: LAST_WORDS_MS / 2 });
  await server.drain(LAST_WORDS_MS);
  await server.close();
  const limit = AbortSignal.timeout(ENGINE_END_MS);
  const tooLong = new Promise<boolean>((resolve) => limit.addEventListener('abort', () => resolve(true)));
  if (await Promise.race([closed.then(() => loaded.isStuck()), tooLong])) {
    if (failure !== null) process.stderr.write(`skein: ${failure.message}\n`);
    // To leave in any other way would be to wait for the thread.
    process.stderr.write('skein: the engine is in a native call that does not return; killing the process\n');
    process.kill(process.pid, 'SIGKILL');
  }
  if (failure !== null) throw failure;
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

/** Resolves at the first signal; the second ends the process where it stands, as it does without a handler. */
function untilSignal(): Promise<null> {
  const signals = ['SIGINT', 'SIGTERM'] as const;
  return new Promise((resolve) => {
    const onSignal = () => {
      for (const signal of signals) process.off(signal, onSignal);
      resolve(null);
    };
    for (const signal of signals) process.on(signal, onSignal);
  });
}
