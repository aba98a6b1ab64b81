import { skeinVersion } from '../../base/package-info.js';
import { threadsWithReason } from '../../base/topology.js';
import { type HandOverOptions, HandOvers } from '../../cluster/nats/hand-overs.js';
import { NO_BLOCKS } from '../../cluster/nats/kept-blocks.js';
import { packLoading } from '../../cluster/nats/loading-notice.js';
import type { FileMessage } from '../../cluster/nats/messages.js';
import { NatsWorkerPort } from '../../cluster/nats/nats-worker-port.js';
import { QueueWorker, type WorkEngine } from '../../cluster/nats/queue-worker.js';
import type { RequestNames } from '../../cluster/nats/request-names.js';
import type { OwnAdapter } from '../../cluster/nats/work-request.js';
import type { InProcessHost } from '../../host/in-process-host.js';
import type { AvailableMemory } from '../../kvcache/available-memory.js';
import { UsageError } from '../errors/user-errors.js';
import type { HealthPort } from '../queue/health-port.js';
import { LoadingTeller } from '../queue/loading-teller.js';
import { ModelFiles } from '../queue/model-files.js';
import { observeWork } from '../queue/observe-work.js';
import { type OpenQueue, openQueue } from '../queue/open-nats.js';
import { ToldCache } from '../queue/told-cache.js';
import { followParent, ownPart, tellParent, type WorkPart } from '../queue/work-part.js';
import { QueueSight } from '../queue/work-sight.js';
import { beatOf, identityOf, workerId } from '../queue/worker-beat.js';
import { type HealthReport, WorkerLife } from '../queue/worker-life.js';
import { logActivity } from '../server/logs/activity-log.js';
import { Log } from '../server/logs/log.js';
import { LogOutput, tellTerminal } from '../server/logs/log-output.js';
import { logEngines } from '../server/logs/model-log.js';
import { checkAddress } from '../server/sockets/listen-address.js';
import type { Tracing } from '../server/tracing/tracing.js';
import { ApiKeys } from '../server/web/access/api-keys.js';
import { LiveModels } from '../serving/model-directory.js';
import type { ModelState } from '../serving/model-state.js';
import type { RunningModel } from '../serving/running-model.js';
import type { Config, ConfiguredModel } from '../settings/config.js';
import { listenForHangUp } from './hang-up.js';
import { listenForInterruption } from './interruption.js';
import { loadConfigured } from './load-configured.js';
import { checkTracing, openTracing } from './open-tracing.js';
import { servedModelOf } from './served-model-of.js';
import { checkLogFile, endWithoutReader, untilSignal } from './server-life.js';
import { allowedHosts } from './server-security.js';

/** Milliseconds between two words of a worker about itself, and about what it has. */
const BEAT_MS = 1_000;
/** Milliseconds of a gateway's silence after which its requests are taken as abandoned. */
const GATEWAY_GRACE_MS = 5_000;
const NO_PREFILL =
  'A prefill worker (--disaggregation-mode prefill) hands over blocks of its KV cache; these can be had from the native executor and from wasm, with --prefix-caching, without ranks and without --micro-batch-overlap.';
/** Milliseconds that the last words may take to leave. */
const FLUSH_MS = 2_000;

/** Runs skein work until SIGTERM or SIGINT. @throws UsageError; an Error where the queue cannot be used; as loadModels */
export async function work(given: Config): Promise<void> {
  const part = ownPart();
  const config = part === null ? given : configOf(part, given);
  const [entry, second] = config.models;
  if (entry === undefined) throw new UsageError('skein work needs a model: --model MODEL.');
  if (config.logFile !== undefined) checkLogFile(config.logFile);
  checkTracing(config);
  const output = new LogOutput(config.logFile, config.logFormat);
  listenForHangUp()(() => output.reopen());
  const log = new Log(config.logLevel, output);
  if (second !== undefined) {
    await workOnSeveral(config, log);
    return;
  }
  // Gateways decide which requests are traced.
  const tracing = openTracing({ ...config, traceRate: 0 }, log, skeinVersion());
  const life = new WorkerLife(entry.name);
  const probes = { life, ...(await openProbes(config, life)) };
  const leaveParent = part === null ? () => {} : followParent();
  try {
    const queue = await openQueue(config, 'skein work');
    try {
      probes.life.follow(queue.nc);
      const interruption = listenForInterruption('interrupted while loading');
      const id = part?.worker ?? workerId();
      const loading = new LoadingTeller({ worker: id, model: entry.name }, (notice) => {
        if (!queue.nc.isClosed()) queue.nc.publish(queue.names.loading, packLoading(notice));
      });
      probes.life.watchLoad(() => loading.state);
      const cache = ToldCache.of(config, entry, id, queue.nc);
      const cacheListener = cache?.teller;
      // A gateway moves what this engine loses, and to others too.
      const more = { cacheListener, resumeRequests: false, watch: loading, memory: memoryOf(part) };
      const [loaded] = await loadConfigured(config, interruption.signal, more).catch((error: unknown) => {
        loading.stop();
        throw error;
      });
      interruption.release();
      if (loaded!.kind !== 'generator') {
        loading.stop();
        await loaded!.close({ abort: true });
        throw new UsageError(
          `${entry.model} is an encoder; the work queue is for models that generate text.`,
        );
      }
      loaded!.onError((error) => log.error({ err: error, model: entry.name }, 'engine error'));
      logEngines(probes.models, log);
      logActivity(probes.models, log);
      probes.models.add(servedModelOf({ entry, loaded: loaded! }, config));
      await workUntilSignal(config, entry, loaded as RunningModel<'generator'>, {
        id,
        loading,
        cache,
        queue,
        probes,
        log,
        tracing,
      });
    } finally {
      await queue.nc.close();
    }
  } finally {
    await probes.port?.close();
    leaveParent();
  }
}

/** What a process of a worker with several models is to do. */
function configOf({ model }: WorkPart, config: Config): Config {
  return { ...config, healthPort: undefined, models: config.models.filter(({ name }) => name === model) };
}

function memoryOf(part: WorkPart | null): AvailableMemory | undefined {
  return part === null
    ? undefined
    : { bytes: part.cacheBytes, from: `the share of ${part.model} in --model-memory-bytes` };
}

async function workOnSeveral(config: Config, log: Log): Promise<void> {
  const { SeveralLife, workSeveral } = await import('./work-several.js');
  const life = new SeveralLife(config.models);
  const { port } = await openProbes(config, life);
  try {
    await workSeveral(config, log, life);
  } finally {
    await port?.close();
  }
}

/** What a worker reports to health probes. */
interface Probes {
  life: WorkerLife;
  /** The model, once it is loaded. */
  models: LiveModels;
  /** null: no probes are answered (no --health-port). */
  port: HealthPort | null;
}

/** @throws ListenError where --health-port cannot be listened on */
async function openProbes(config: Config, life: { report(): HealthReport }): Promise<Omit<Probes, 'life'>> {
  const { host, healthPort } = config;
  const models = new LiveModels();
  if (healthPort === undefined) return { models, port: null };
  const address = await checkAddress(host, healthPort, '--health-port');
  const { HealthPort } = await import('../queue/health-port.js');
  const { ServerMetrics } = await import('../server/metrics/families/server-metrics.js');
  const port = await HealthPort.listen({
    host,
    port: healthPort,
    allowedHosts: allowedHosts(config, new ApiKeys([]), address),
    report: () => life.report(),
    metrics: config.metrics ? new ServerMetrics(models, { process: true }) : null,
  });
  return { models, port };
}

/** What a worker works with besides its model. */
interface Surroundings {
  /** Id of the worker. */
  id: string;
  /** Reports that it takes no requests yet. */
  loading: LoadingTeller;
  /** null: its cache is not reported. */
  cache: ToldCache | null;
  queue: OpenQueue;
  probes: Probes;
  log: Log;
  /** null: nothing is traced. */
  tracing: Tracing | null;
}

async function workUntilSignal(
  config: Config,
  entry: ConfiguredModel,
  loaded: RunningModel<'generator'>,
  { id, loading, cache, queue: { nc, names, stream }, probes, log, tracing }: Surroundings,
): Promise<void> {
  const engine = loaded.model.engine as InProcessHost;
  const files = await ModelFiles.open(loaded.info.enginePath);
  const identity = identityOf(id, { config, entry, loaded, files });
  const { pool, layout, isPrefill, places } = identity;
  if (isPrefill && layout === null) {
    loading.stop();
    await loaded.close({ abort: true });
    throw new UsageError(NO_PREFILL);
  }
  const onWarning = (message: string, about?: RequestNames) => log.warn({ worker: id, ...about }, message);
  let isGone = false;
  const beat = (isWhole: boolean) => {
    const { isLeaving, size: held } = worker;
    const cacheNumber = cache?.teller.number ?? null;
    const now = { ...loaded.statistics.counts(), held, cacheNumber, isLeaving, isGone };
    return beatOf(identity, now, isWhole);
  };
  const readFile = async ({ pool: of, name, offset }: FileMessage, most: number) =>
    of === pool.fingerprint ? files.read(name, offset, most) : null;
  const port = new NatsWorkerPort({ nc, stream, names, pool, id, beat, readFile, onWarning });
  const handOvers = handOversOf(engine, { port, layout, maxBytes: config.maxHandOverBytes, onWarning });
  const worker: QueueWorker = new QueueWorker({
    id,
    port,
    engine: workEngineOf(engine, loaded.state),
    places,
    adapterOf: (name) => adapterOf(loaded, name),
    gatewayGraceMs: GATEWAY_GRACE_MS,
    handOvers,
    sight: loaded.seesWith ? new QueueSight(loaded.seesWith.sight) : null,
    onRoom: () => port.tell(false),
    observe: observeWork({ worker: id, model: entry.name, ranks: loaded.state.ranks?.size }, log, tracing),
    onWarning,
  });
  port.listen({
    onWork: (delivery) => worker.onWork(delivery),
    onOffer: (item) => worker.offer(item),
    onCacheAsk: (message) => cache?.teller.answer(message) ?? null,
    onStop: (message) => worker.stop(message),
    onBlocks: (message) => handOvers?.answer(message) ?? NO_BLOCKS,
  });
  // Gateways have its first beat already: it is counted twice for a moment, and never left out.
  loading.ready();
  if (cache !== null) cache.send = (change) => port.tellCache(change);
  const timer = setInterval(() => {
    port.tell(false);
    worker.holdAll();
    worker.wake();
    tellParent({ isReady: true, held: worker.size });
  }, BEAT_MS);
  tellParent({ isReady: true, held: 0 });
  worker.wake();
  const signalled = untilSignal();
  probes.life.begin(worker, { id, pool: pool.fingerprint, state: loaded.state });
  const { port: health } = probes;
  process.stdout.write(
    greeting(entry, loaded, {
      id,
      pool: pool.fingerprint,
      stream: names.stream,
      isPrefill,
      health: health?.url ?? null,
    }),
  );
  const failure = await Promise.race([signalled, failed(loaded.state)]);
  if (failure === null) await handedOver(config, { worker, handOvers, tell: () => port.tell(true) });
  clearInterval(timer);
  worker.close();
  isGone = true;
  port.tell(true);
  await Promise.race([Promise.all([nc.drain().catch(() => {}), tracing?.close()]), after(FLUSH_MS)]);
  await loaded.close({ abort: true, terminateAfterMs: FLUSH_MS });
  endWithoutReader();
  if (failure !== null) throw failure;
}

/** Lets a worker's requests move to others, or end. */
async function handedOver(
  { drainTimeoutSeconds }: Config,
  { worker, handOvers, tell }: { worker: QueueWorker; handOvers: HandOvers | null; tell: () => void },
): Promise<void> {
  tellTerminal('handing over the requests under way; a second signal ends at once');
  worker.leave();
  tell();
  const whenEmpty = worker.whenEmpty().then(() => handOvers?.whenEmpty());
  await Promise.race([whenEmpty, after(1000 * drainTimeoutSeconds)]);
}

/** null: the engine's blocks cannot be had. */
function handOversOf(
  engine: InProcessHost,
  {
    layout,
    ...options
  }: Pick<HandOverOptions, 'port' | 'maxBytes' | 'onWarning'> & { layout: string | null },
): HandOvers | null {
  const { tokensPerBlock, bytesPerBlock, bytesPerState } = engine.info!;
  if (layout === null || bytesPerBlock === null) return null;
  return new HandOvers({ ...options, engine, layout, tokensPerBlock, bytesPerBlock, bytesPerState });
}

function workEngineOf(engine: InProcessHost, state: ModelState): WorkEngine {
  return {
    submitSeveral: (request) => engine.submitSeveral(request),
    // While the engine starts again, others are faster.
    get waiting() {
      return state.status === 'ready' ? engine.waiting : Number.POSITIVE_INFINITY;
    },
  };
}

function adapterOf({ adapters }: RunningModel<'generator'>, name: string): OwnAdapter | null {
  const adapter = adapters?.find(name);
  if (adapter == null || adapter.weights === null) return null;
  return { loraTaskId: adapter.taskId, adapter: adapter.weights };
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
  {
    id,
    pool,
    stream,
    isPrefill,
    health,
  }: { id: string; pool: string; stream: string; isPrefill: boolean; health: string | null },
): string {
  const lines = [
    `skein ${skeinVersion()} works on ${name} for the gateways of ${stream}`,
    `  ${info.executor} executor on ${info.instructionSet}, ${threadsWithReason(info.threads)}`,
    `  weights ${info.weights}, KV cache of ${info.kvTokens} tokens in ${info.kvDtype}, context of ${info.maxSeqLen} tokens`,
    ...(isPrefill ? ['  computes long prompts for the workers that answer them (prefill)'] : []),
    `  worker ${id}, equal to all others of the pool ${pool}`,
    ...(health === null ? [] : [`  how it is: ${health}/health, and its metrics: ${health}/metrics`]),
  ];
  return `${lines.join('\n')}\n`;
}
