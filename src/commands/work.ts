import { randomBytes } from 'node:crypto';
import { skeinVersion } from '../../base/package-info.js';
import type { Beat, FileMessage } from '../../callbacks/nats/messages.js';
import { NatsWorkerPort } from '../../callbacks/nats/nats-worker-port.js';
import { QueueWorker } from '../../callbacks/nats/queue-worker.js';
import type { InProcessHost } from '../../host/in-process-host.js';
import type { Config, ConfiguredModel } from '../config.js';
import { listenForInterruption } from '../interruption.js';
import type { HealthPort } from '../queue/health-port.js';
import { modelCard, poolFingerprint } from '../queue/model-card.js';
import { ModelFiles } from '../queue/model-files.js';
import { type OpenQueue, openQueue } from '../queue/open-nats.js';
import { WorkerLife } from '../queue/worker-life.js';
import { ApiKeys } from '../server/api-keys.js';
import { checkAddress } from '../server/listen-address.js';
import { Log } from '../server/log.js';
import { LogOutput } from '../server/log-output.js';
import { LiveModels } from '../serving/model-directory.js';
import type { ModelState } from '../serving/model-state.js';
import type { RunningModel } from '../serving/running-model.js';
import { threadCount } from '../thread-count.js';
import { UsageError } from '../usage-error.js';
import { loadConfigured } from './load-configured.js';
import { servedModelOf } from './served-model-of.js';
import { checkLogFile, untilSignal } from './server-life.js';
import { allowedHosts } from './server-security.js';

/** Milliseconds between two words of a worker about itself, and about what it has. */
const BEAT_MS = 1_000;
/** Milliseconds without a word of a gateway after which nobody is believed to wait for its requests. */
const GATEWAY_GRACE_MS = 5_000;
/** Milliseconds that the last words may take to leave. */
const FLUSH_MS = 2_000;

/** Runs skein work until SIGTERM or SIGINT. @throws UsageError; an Error where the queue cannot be used; as loadModels */
export async function work(config: Config): Promise<void> {
  const [entry, second] = config.models;
  if (entry === undefined) throw new UsageError('skein work needs a model: --model MODEL.');
  if (second !== undefined) {
    throw new UsageError('skein work runs one model; start another worker for each further one.');
  }
  if (config.logFile !== undefined) checkLogFile(config.logFile);
  const output = new LogOutput(config.logFile);
  if (config.logFile !== undefined) process.on('SIGHUP', () => output.reopen());
  const log = new Log(config.logLevel, output);
  const probes = await openProbes(config, entry.name);
  try {
    const queue = await openQueue(config, 'skein work');
    try {
      probes.life.follow(queue.nc);
      const interruption = listenForInterruption('interrupted while loading');
      const [loaded] = await loadConfigured(config, interruption.signal);
      interruption.release();
      if (loaded!.kind !== 'generator') {
        await loaded!.close({ abort: true });
        throw new UsageError(
          `${entry.model} is an encoder; the work queue is for models that generate text.`,
        );
      }
      loaded!.onError((error) => log.error({ err: error, model: entry.name }, 'engine error'));
      probes.models.add(servedModelOf({ entry, loaded: loaded! }, config));
      await workUntilSignal(config, entry, loaded as RunningModel<'generator'>, { queue, probes, log });
    } finally {
      await queue.nc.close();
    }
  } finally {
    await probes.port?.close();
  }
}

/** What a worker tells those who ask how it is. */
interface Probes {
  life: WorkerLife;
  /** The model, once it is loaded. */
  models: LiveModels;
  /** null: nobody can ask (no --health-port). */
  port: HealthPort | null;
}

/** @throws ListenError where --health-port cannot be listened on */
async function openProbes(config: Config, name: string): Promise<Probes> {
  const { host, healthPort } = config;
  const life = new WorkerLife(name);
  const models = new LiveModels();
  if (healthPort === undefined) return { life, models, port: null };
  const address = await checkAddress(host, healthPort, '--health-port');
  const { HealthPort } = await import('../queue/health-port.js');
  const { ServerMetrics } = await import('../server/metrics/server-metrics.js');
  const port = await HealthPort.listen({
    host,
    port: healthPort,
    allowedHosts: allowedHosts(config, new ApiKeys([]), address),
    report: () => life.report(),
    metrics: config.metrics ? new ServerMetrics(models, { process: true }) : null,
  });
  return { life, models, port };
}

/** What a worker works with beside its model. */
interface Surroundings {
  queue: OpenQueue;
  probes: Probes;
  log: Log;
}

async function workUntilSignal(
  config: Config,
  entry: ConfiguredModel,
  loaded: RunningModel<'generator'>,
  { queue: { nc, names, stream }, probes, log }: Surroundings,
): Promise<void> {
  const engine = loaded.model.engine as InProcessHost;
  const files = await ModelFiles.open(loaded.info.enginePath);
  const { maxBeamWidth } = { ...config, ...entry.options };
  const model = modelCard(entry, loaded, engine.info!, files, maxBeamWidth);
  const pool = { model: entry.name, fingerprint: poolFingerprint(model, entry, config) };
  const id = `w${randomBytes(6).toString('hex')}`;
  const places = engine.info!.maxNumSequences;
  const onWarning = (message: string) => log.warn({ worker: id }, message);
  let isGone = false;
  const beat = (): Beat => {
    const { maxBlocks, usedBlocks } = loaded.statistics.counts();
    const has = { places, held: worker.size, maxBlocks, usedBlocks };
    return {
      kind: 'beat',
      worker: id,
      pool: pool.fingerprint,
      model,
      ...has,
      isLeaving: worker.isLeaving,
      isGone,
    };
  };
  const readFile = async ({ pool: of, name, offset }: FileMessage, most: number) =>
    of === pool.fingerprint ? files.read(name, offset, most) : null;
  const port = new NatsWorkerPort({ nc, stream, names, pool, id, beat, readFile, onWarning });
  const worker: QueueWorker = new QueueWorker({
    id,
    port,
    engine: {
      submitSeveral: (request) => engine.submitSeveral(request),
      // While the engine starts again, others are faster.
      get waiting() {
        return loaded.state.status === 'ready' ? engine.waiting : Number.POSITIVE_INFINITY;
      },
    },
    places,
    adapterOf: (name) => {
      const adapter = loaded.adapters?.find(name);
      return adapter == null || adapter.weights === null
        ? null
        : { loraTaskId: adapter.taskId, adapter: adapter.weights };
    },
    gatewayGraceMs: GATEWAY_GRACE_MS,
    onWarning,
  });
  port.listen({
    onWork: (delivery) => worker.onWork(delivery),
    onStop: (message) => worker.stop(message),
  });
  const timer = setInterval(() => {
    port.beat(beat());
    worker.holdAll();
    worker.wake();
  }, BEAT_MS);
  worker.wake();
  const signalled = untilSignal();
  probes.life.begin(worker, { id, pool: pool.fingerprint, state: loaded.state });
  const { port: health } = probes;
  process.stdout.write(
    greeting(entry, loaded, {
      id,
      pool: pool.fingerprint,
      stream: names.stream,
      health: health?.url ?? null,
    }),
  );
  const failure = await Promise.race([signalled, failed(loaded.state)]);
  if (failure === null) {
    process.stderr.write('skein: handing over the requests under way; a second signal ends at once\n');
    worker.leave();
    port.beat(beat());
    await Promise.race([worker.whenEmpty(), after(1000 * config.drainTimeoutSeconds)]);
  }
  clearInterval(timer);
  worker.close();
  isGone = true;
  port.beat(beat());
  await Promise.race([nc.drain().catch(() => {}), after(FLUSH_MS)]);
  await loaded.close({ abort: true, terminateAfterMs: FLUSH_MS });
  if (failure !== null) throw failure;
}

function after(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms).unref());
}

/** Resolves with the error where the engine has failed for good. */
function failed(state: ModelState): Promise<Error> {
  return new Promise((resolve) => {
    state.onChange(() => {
      if (state.status === 'failed' && state.failure !== null) resolve(state.failure);
    });
  });
}

function greeting(
  { name }: ConfiguredModel,
  { info }: RunningModel<'generator'>,
  { id, pool, stream, health }: { id: string; pool: string; stream: string; health: string | null },
): string {
  const lines = [
    `skein ${skeinVersion()} works on ${name} for the gateways of ${stream}`,
    `  ${info.executor} executor on ${info.instructionSet}, ${threadCount(info.threads)}`,
    `  weights ${info.weights}, KV cache of ${info.kvTokens} tokens in ${info.kvDtype}, context of ${info.maxSeqLen} tokens`,
    `  worker ${id}, equal to all others of the pool ${pool}`,
    ...(health === null ? [] : [`  how it is: ${health}/health, and its metrics: ${health}/metrics`]),
  ];
  return `${lines.join('\n')}\n`;
}
