import { createHash, randomBytes } from 'node:crypto';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { messageOf } from '../../base/error-text.js';
import { defaultCacheDirectory } from '../../base/home-folder.js';
import { skeinVersion } from '../../base/package-info.js';
import type { Routed } from '../../cluster/gateway/cache-routes.js';
import { QueueGateway } from '../../cluster/gateway/queue-gateway.js';
import type { ModelCard } from '../../cluster/nats/beat.js';
import type { LoadingNotice } from '../../cluster/nats/loading-notice.js';
import { NatsGatewayPort } from '../../cluster/nats/nats-gateway-port.js';
import type { RequestNames } from '../../cluster/nats/request-names.js';
import { PoolWeights } from '../../cluster/routing/pool-weights.js';
import { KnownModels } from '../queue/known-models.js';
import { KnownRecords } from '../queue/known-records.js';
import { LearnedModels } from '../queue/learned-models.js';
import { LoadingWorkers } from '../queue/loading-workers.js';
import { NatsQuotaRecords } from '../queue/nats-quota-records.js';
import { type OpenQueue, openQueue } from '../queue/open-nats.js';
import { readPoolWeights } from '../queue/read-pool-weights.js';
import { openSharedState, type SharedState } from '../queue/shared-state.js';
import { WantedModels } from '../queue/wanted-models.js';
import { FolderRecords } from '../server/files/folder-records.js';
import { tellTerminal } from '../server/logs/log-output.js';
import type { Targets } from '../server/metrics/scaling/desired-workers.js';
import { checkAddress } from '../server/sockets/listen-address.js';
import { ExpectedModels } from '../serving/expected-models.js';
import type { ModelSource } from '../serving/repository/model-source.js';
import type { RunningModel } from '../serving/running-model.js';
import type { Config, ConfiguredModel } from '../settings/config.js';
import { takeCacheSecret } from './cache-secret.js';
import { listenForHangUp } from './hang-up.js';
import { versionOf } from './model-repository.js';
import { type OpenServer, openServer } from './open-server.js';
import { checkLogFile, drained, end, filesFolder, untilSignal } from './server-life.js';
import { allowedHosts, readSecurity } from './server-security.js';

/**
 * Milliseconds of a worker's silence after which it is asked whether it is there: workers report every
 * second.
 */
const PROBE_AFTER_MS = 1_500;
/** A worker reports every second what it has. */
const UNTOLD_AFTER_MS = 5_000;

/** Runs skein gateway until SIGTERM or SIGINT. @throws UsageError, ListenError; an Error where the queue cannot be used */
export async function gateway(given: Config): Promise<void> {
  // The models are those of the workers.
  const config: Config = { ...given, models: [] };
  const reloadBy = listenForHangUp();
  const keysAndOrigins = readSecurity(config);
  takeCacheSecret(config);
  const weights = new PoolWeights(readPoolWeights(config.poolWeights));
  if (config.logFile !== undefined) checkLogFile(config.logFile);
  if (config.tracing || config.traceEndpoint !== undefined)
    (await import('./open-tracing.js')).checkTracing(config);
  const address = await checkAddress(config.host, config.port);
  const security = { ...keysAndOrigins, allowedHosts: allowedHosts(config, keysAndOrigins.apiKeys, address) };
  const lock = config.filesDir === undefined ? null : await filesFolder(config.filesDir);
  try {
    const queue = await openQueue(config, 'skein gateway');
    try {
      let learned: LearnedModels | null = null;
      let atGateway: QueueGateway | null = null;
      const id = `g${randomBytes(6).toString('hex')}`;
      const shared = await openSharedState(config, queue, id);
      const expected = new ExpectedModels(config.knownModel);
      const opened = await openServer([], config, security, null, {
        shared,
        ...(shared === null ? {} : { quotaRecords: await NatsQuotaRecords.open(shared.quotas, id) }),
        starting: () => (learned === null ? [] : learned.starting),
        isLooking: 'no worker has reported yet',
        isRouted: config.routing === 'cache',
        targets: targetsOf(config),
        poolWeights: weights,
        expected,
        whyCutOff: () => (atGateway?.isConnected === false ? 'the NATS server cannot be reached' : null),
      });
      reloadBy(() => {
        opened.reload();
        reloadWeights(config, weights, opened);
      });
      const begun = learnModels(config, id, queue, opened, { shared, weights, expected });
      ({ learned, atGateway } = begun);
      await serveQueue(config, queue, opened, begun.atGateway);
      begun.close();
      await shared?.presence.close();
    } finally {
      await queue.nc.close();
    }
  } finally {
    lock?.release();
  }
}

/** What is wrong with a file is logged, and what was in force before stays so. */
function reloadWeights({ poolWeights }: Config, weights: PoolWeights, { around: { log } }: OpenServer): void {
  if (poolWeights?.startsWith('@') !== true) return;
  try {
    weights.replace(readPoolWeights(poolWeights));
    log.info({}, 'pool weights read again');
  } catch (error) {
    log.error({ reason: messageOf(error) }, 'pool weights not changed');
  }
}

/** undefined: there are none. */
function targetsOf({ targetFirstTokenMs, targetBetweenTokensMs }: Config): Targets | undefined {
  if (targetFirstTokenMs === undefined && targetBetweenTokensMs === undefined) return undefined;
  return { firstTokenMs: targetFirstTokenMs, betweenTokensMs: targetBetweenTokensMs };
}

async function serveQueue(
  config: Config,
  queue: OpenQueue,
  opened: OpenServer,
  atGateway: QueueGateway,
): Promise<void> {
  const { server, grpc, repository, batches, tasks, flush } = opened;
  const servers = [server, batches, ...(grpc === null ? [] : [grpc])];
  batches.start();
  tasks?.start();
  const signalled = untilSignal();
  process.stdout.write(
    `skein ${skeinVersion()} is a gateway to the workers of ${queue.names.stream} at ${server.url}/v1\n` +
      `  a worker: skein work --nats ${config.nats!.join(',')} --model MODEL\n`,
  );
  await signalled;
  tellTerminal('finishing the answers under way; a second signal ends at once');
  if (!(await drained(servers, config.drainTimeoutSeconds * 1000))) {
    tellTerminal(`some answers took longer than ${config.drainTimeoutSeconds} s and are cut off`);
  }
  // Another gateway continues what is made in the background.
  await tasks?.leave();
  await end(servers, repository, flush, null);
  atGateway.close();
  // Sends workers the ends of requests that are no longer awaited.
  await queue.nc.flush().catch(() => {});
}

/** Begins to listen to workers, and to serve their models. */
function learnModels(
  config: Config,
  id: string,
  { nc, names, stream }: OpenQueue,
  opened: OpenServer,
  {
    shared,
    weights,
    expected,
  }: { shared: SharedState | null; weights: PoolWeights; expected: ExpectedModels },
): { atGateway: QueueGateway; learned: LearnedModels; close: () => void } {
  const { repository, around } = opened;
  const onWarning = (message: string, about?: RequestNames) =>
    around.log.warn({ gateway: id, ...about }, message);
  const hearsCaches = config.routing === 'cache';
  const loading = new LoadingWorkers();
  const onLoading = (notice: LoadingNotice) => {
    if (notice.phase === 'able') expected.offer(notice.model);
    else loading.hear(notice);
  };
  const port = new NatsGatewayPort({ nc, stream, names, id, hearsCaches, onLoading, onWarning });
  const { maxQueuedRequests, maxQueuedRequestsPerKey, fairQueueing } = config;
  const onRouted = (routed: Routed) => around.log.debug({ ...routed }, 'request routed');
  const atGateway: QueueGateway = new QueueGateway({
    id,
    port,
    silence: {
      probeAfterMs: PROBE_AFTER_MS,
      lostAfterMs: 1000 * config.workerSilenceSeconds,
      untoldAfterMs: UNTOLD_AFTER_MS,
    },
    workerWaitMs: 1000 * config.workerWaitSeconds,
    allowsDifferentBits: config.allowDifferentBits,
    maxLocalPrefillLength: config.maxLocalPrefillLength,
    weights,
    ...(hearsCaches ? { routing: { port, onRouted } } : {}),
    onBeat: (beat) => learned.onBeat(beat),
    onLost: (worker, why) => {
      around.log.info({ worker }, why === 'lost' ? 'worker lost' : 'worker gone');
      learned.onLost();
    },
    onFall: (fallen) => around.log.info({ ...fallen }, 'attempt given up'),
    onWarning,
  });
  const folder = join(config.cacheDir ?? defaultCacheDirectory(), 'gateway');
  const records = knownRecords(config, folder, shared);
  const known = records === null ? null : new KnownModels({ records, serving: () => learned, onWarning });
  const learned: LearnedModels = new LearnedModels({
    gateway: atGateway,
    folder,
    ...(known === null ? {} : { firstLook: known.firstLook, onServed: () => void known.look() }),
    limits: {
      maxQueueSize: maxQueuedRequests,
      maxQueueSizePerKey: maxQueuedRequestsPerKey,
      fairQueueing,
    },
    readFile: (...part) => port.readFile(...part),
    loading,
    knowsNames: () => expected.names.length > 0,
    bring: (card, start) => repository.bring(card.name, sourceOf(card, start, opened)),
    takeAway: (name) => repository.takeAway(name),
    onWarning,
  });
  port.listen(atGateway);
  known?.start();
  const wanted = new WantedModels({
    ...{ learned, loading, expected },
    tell: (model) => {
      if (!nc.isClosed()) nc.publish(names.wanted(model));
    },
  });
  const close = () => {
    known?.close();
    wanted.close();
  };
  return { atGateway, learned, close };
}

/** Where it is kept what models gateways have met; null: nowhere. */
function knownRecords(config: Config, folder: string, shared: SharedState | null): KnownRecords | null {
  if (shared !== null) return shared.models === null ? null : new KnownRecords(shared.models, true);
  // Another queue has other models.
  const queue = createHash('sha256')
    .update(JSON.stringify([config.nats, config.natsPrefix]))
    .digest('hex');
  const own = join(folder, 'known', queue.slice(0, 16));
  return new KnownRecords(new FolderRecords(() => made(own)), false);
}

async function made(folder: string): Promise<string> {
  await mkdir(folder, { recursive: true });
  return folder;
}

function sourceOf(
  { name, aliases, fileName }: ModelCard,
  start: () => Promise<RunningModel<'generator'>>,
  { around }: OpenServer,
): ModelSource {
  const entry: ConfiguredModel = { name, aliases, model: fileName, options: {}, adapters: {} };
  return {
    plan: async () => ({
      identity: null,
      versions: ['1'],
      start: async () => versionOf(entry, '1', await start(), around),
    }),
  };
}
