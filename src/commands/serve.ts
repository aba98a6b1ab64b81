import { existsSync, mkdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { messageOf } from '../../base/error-text.js';
import { packageRoot, skeinVersion } from '../../base/package-info.js';
import { writeProblem } from '../../base/system-problem.js';
import { threadsWithReason } from '../../base/topology.js';
import type { ModelConfig } from '../../models/repository/model-config.js';
import { UsageError } from '../errors/user-errors.js';
import { hubSettings } from '../hub/settings.js';
import { listenWhileLoading } from '../server/listening/loading-answers.js';
import { tellTerminal } from '../server/logs/log-output.js';
import { printable } from '../server/logs/text-lines.js';
import { checkAddress } from '../server/sockets/listen-address.js';
import { isLoopbackName } from '../server/web/access/loopback.js';
import type { ModelState } from '../serving/model-state.js';
import type { ServingRepository } from '../serving/repository/serving-repository.js';
import type { EncoderInfoOfModel } from '../serving/running-model.js';
import type { Config } from '../settings/config.js';
import { demoModelPath } from '../settings/demo-model.js';
import { takeCacheSecret } from './cache-secret.js';
import { listenForHangUp } from './hang-up.js';
import { listenForInterruption } from './interruption.js';
import { loadConfigured } from './load-configured.js';
import type { OpenServer, openServer } from './open-server.js';
import type { LoadedEntry } from './served-model-of.js';
import { checkLogFile, drained, end, filesFolder, type Listening, untilSignal } from './server-life.js';
import { allowedHosts, readSecurity, type ServerSecurity } from './server-security.js';

/** Runs skein serve until SIGTERM or SIGINT. @throws ListenError, CheckpointError, EngineError, AddonError. */
export async function serve(config: Config): Promise<void> {
  const keysAndOrigins = readSecurity(config);
  takeCacheSecret(config);
  if (config.loraDir !== undefined && !statSync(config.loraDir, { throwIfNoEntry: false })?.isDirectory()) {
    throw new UsageError(`--lora-dir is ${config.loraDir}, and there is no such folder.`);
  }
  if (config.allowSharedMemory && process.platform !== 'linux') {
    throw new UsageError('--allow-shared-memory is for Linux, whose objects of shared memory are files.');
  }
  if (config.logFile !== undefined) checkLogFile(config.logFile);
  if (config.tracing || config.traceEndpoint !== undefined)
    (await import('./open-tracing.js')).checkTracing(config);
  for (const folder of config.modelRepository ?? []) {
    if (!statSync(folder, { throwIfNoEntry: false })?.isDirectory())
      throw new UsageError(`--model-repository is ${folder}, and there is no such folder.`);
  }
  if (config.modelsDir !== undefined) {
    // Read again at each request for a model: faults in them are reported here.
    hubSettings();
    makeModelsDir(config.modelsDir);
  }
  const lock = config.filesDir === undefined ? null : await filesFolder(config.filesDir);
  try {
    await serveUntilSignal(config, keysAndOrigins);
  } finally {
    lock?.release();
  }
}

async function serveUntilSignal(config: Config, keysAndOrigins: ServerSecurity): Promise<void> {
  const reloadBy = listenForHangUp();
  const address = await checkAddress(config.host, config.port);
  if (config.grpcPort !== undefined) await checkAddress(config.host, config.grpcPort, '--grpc-port');
  const security = { ...keysAndOrigins, allowedHosts: allowedHosts(config, keysAndOrigins.apiKeys, address) };
  const { running, opened, signalled } = await openLoaded(config, security);
  const { server, grpc, repository, life, batches, reload, flush, failed } = opened;
  const servers: Listening[] = [server, batches, ...(grpc === null ? [] : [grpc])];
  reloadBy(reload);
  const polling = await startFolders(repository, config, servers);
  batches.start();
  performance.mark('skein: listening');
  process.stdout.write(greeting(running, repository, server.url, grpc?.url ?? null, config.modelsDir));
  if (security.apiKeys.count === 0 && !isLoopbackName(new URL(server.url).hostname)) {
    process.stderr.write(
      'skein: anyone who reaches this address may use it, from other machines too; --api-key-file or --api-key asks for a key\n',
    );
  }
  for (const { entry, loaded: model } of running) {
    if (model.kind !== 'generator' || !model.kvEvents?.isOpen) continue;
    process.stderr.write(
      `skein: the tokens of all prompts of ${entry.name} go unencrypted to anyone who reads the events of its KV cache (${model.kvEvents.address}), on other machines too; --kv-events-curve-key-file encrypts them\n`,
    );
  }
  const failure = await Promise.race([signalled, ...(config.exitOnFailure ? [failed] : [])]);
  clearInterval(polling);
  if (failure === null) {
    tellTerminal('finishing the answers under way; a second signal ends at once');
    if (!(await drained(servers, config.drainTimeoutSeconds * 1000))) {
      tellTerminal(`some answers took longer than ${config.drainTimeoutSeconds} s and are cut off`);
    }
  }
  life?.models.close();
  life?.pulls.close();
  life?.catalogue?.close();
  await end(servers, repository, flush, failure);
}

/**
 * Loads the models, reports that to clients meanwhile, and then answers them.
 * @throws ListenError, and what keeps a model from being loaded
 */
async function openLoaded(
  config: Config,
  security: Parameters<typeof openServer>[2],
): Promise<{ running: LoadedEntry[]; opened: OpenServer; signalled: ReturnType<typeof untilSignal> }> {
  const { host, port, maxConnections, models } = config;
  const { tls, allowedHosts } = security;
  const interruption = listenForInterruption('interrupted while loading');
  const names = models.map(({ name }) => name);
  const socket = { host, port, tls, maxConnections, allowedHosts };
  const early = await listenWhileLoading(socket, names);
  try {
    const loading = loadConfigured(config, interruption.signal);
    // While the engine's thread loads, this thread imports the modules that answer clients.
    const [loaded, { openServer }] = await Promise.all([loading, importServer()]);
    // From here on a signal ends the server in good order, also one that comes as soon as it says that it is there.
    const signalled = untilSignal();
    interruption.release();
    const running = models.map((entry, index) => ({ entry, loaded: loaded[index]! }));
    return { running, opened: await openServer(running, config, security, early), signalled };
  } catch (error) {
    await early.close();
    throw error;
  }
}

/** Makes the folder of models where there is none: what clients pull comes into it. @throws UsageError */
function makeModelsDir(path: string): void {
  try {
    const first = mkdirSync(path, { recursive: true });
    if (first !== undefined)
      process.stderr.write(`skein: the folder of --models-dir was not there and was made: ${path}\n`);
  } catch (error) {
    throw new UsageError(`The folder of --models-dir, ${path}, cannot be made: ${writeProblem(error)}`);
  }
}

/** Loads the models of the folders that are to be loaded at the start, and looks at them again where that is wanted. */
async function startFolders(
  repository: ServingRepository,
  { modelRepository, modelControlMode: mode, loadModel = [], modelPollSeconds, exitOnError }: Config,
  servers: readonly Listening[],
): Promise<NodeJS.Timeout | undefined> {
  if (modelRepository === undefined) return undefined;
  const polling = () =>
    mode === 'poll' ? setInterval(() => void repository.poll(), 1000 * modelPollSeconds) : undefined;
  const isAll = mode !== 'explicit' || loadModel.includes('*');
  try {
    await repository.start(isAll ? null : loadModel);
  } catch (error) {
    if (!exitOnError) {
      process.stderr.write(`skein: ${messageOf(error)}\n`);
      return polling();
    }
    await Promise.all([repository.close({ abort: true }), ...servers.map((server) => server.close())]);
    throw error;
  }
  return polling();
}

async function importServer() {
  const module = await import('./open-server.js');
  performance.mark('skein: server imported');
  return module;
}

function aboutTheDemo(): string[] {
  const isCheckout = existsSync(join(packageRoot(), 'src'));
  const serve = isCheckout ? 'npm start --' : 'npx skein serve';
  return [
    '  this is the demo model that comes with skein: it writes little stories, offline, and knows nothing else',
    `  for a real one: ${serve} --model HuggingFaceTB/SmolLM2-135M-Instruct (or a folder, or a GGUF file)`,
  ];
}

function kindOf({ backend, ensemble_scheduling: steps }: ModelConfig): string {
  return steps === undefined ? `backend ${backend}` : 'an ensemble';
}

function greeting(
  running: readonly LoadedEntry[],
  repository: ServingRepository,
  url: string,
  grpcUrl: string | null,
  modelsDir: string | undefined,
): string {
  const given = new Set(running.map(({ entry }) => entry.name));
  const ofFolders = repository.loaded().filter(({ config }) => !given.has(config.name));
  const names = [...given, ...ofFolders.map(({ config }) => config.name)].join(', ') || 'no model yet';
  const lines = running.flatMap(({ entry, loaded, loaded: { info, state } }) => [
    ...(running.length === 1 ? [] : [`  ${entry.name}: ${entry.model}`]),
    `  ${info.executor} executor on ${info.instructionSet}, ${threadsWithReason(info.threads)}`,
    `  weights ${info.weights}, ${'kvTokens' in info ? `KV cache of ${info.kvTokens} tokens in ${info.kvDtype}, context` : madeOf(info)} of ${info.maxSeqLen} tokens`,
    ...ranksOf(state),
    ...adaptersOf(entry),
    ...kvEventsOf(loaded),
  ]);
  if (running.some(({ entry }) => entry.model === demoModelPath())) lines.push(...aboutTheDemo());
  for (const { config, version } of ofFolders)
    lines.push(`  ${config.name}: version ${version}, ${kindOf(config)}`);
  if (ofFolders.length > 0) lines.push(`  by the Open Inference Protocol: ${url}/v2`);
  if (modelsDir !== undefined) lines.push(`  models of ${modelsDir} are loaded when they are asked for`);
  if (grpcUrl !== null) lines.push(`  the same over gRPC: ${grpcUrl}`);
  const hasChat = repository.loaded().some(({ kind }) => kind === 'generator');
  lines.push(
    `  ${hasChat ? 'to chat with it, and to see what is in flight' : 'to see what it does'}: ${url}`,
  );
  const all = [`skein ${skeinVersion()} serves ${names} at ${url}/v1`, ...lines];
  return `${all.map(printable).join('\n')}\n`;
}

function ranksOf({ ranks }: ModelState): string[] {
  if (ranks === null) return [];
  const { size, address } = ranks;
  return [`  on ${size} ranks, ${address === null ? 'all on this machine' : `which meet at ${address}`}`];
}

function adaptersOf({ adapters }: LoadedEntry['entry']): string[] {
  const names = Object.keys(adapters);
  return names.length === 0
    ? []
    : [`  with ${names.length === 1 ? 'the LoRA adapter' : 'the LoRA adapters'} ${names.join(', ')}`];
}

function kvEventsOf(loaded: LoadedEntry['loaded']): string[] {
  if (loaded.kind !== 'generator' || loaded.kvEvents === null) return [];
  const { address, replayAddress } = loaded.kvEvents;
  return [
    `  events of the KV cache at ${address}${replayAddress === null ? '' : `, lost ones at ${replayAddress}`}`,
  ];
}

function madeOf({ task, dimensions }: EncoderInfoOfModel): string {
  if (task === 'score') return 'scores of pairs';
  return task === 'classification'
    ? `scores of ${dimensions} labels, from texts`
    : `embeddings of ${dimensions} values, from texts`;
}
