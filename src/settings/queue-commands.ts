import { OPTIONS, type Option, type OptionName } from '../options/table.js';

/** Options of both ends of the work queue. */
const OF_BOTH: readonly OptionName[] = [
  'nats',
  'natsPrefix',
  'natsCredsFile',
  'natsNkeyFile',
  'natsUser',
  'natsPasswordFile',
  'natsTokenFile',
  'natsCaFile',
  'natsCertFile',
  'natsKeyFile',
  'natsStorage',
  'natsReplicas',
  'natsMaxRequests',
  'cacheDir',
  'drainTimeoutSeconds',
  'logLevel',
  'logFile',
  'logFormat',
  'tracing',
  'traceEndpoint',
];

/** Options of a gateway: those of a server that has no engine. */
const OF_GATEWAY: readonly OptionName[] = [
  ...OF_BOTH,
  'state',
  'allowDifferentBits',
  'routing',
  'maxLocalPrefillLength',
  'poolWeights',
  'workerWaitSeconds',
  'workerSilenceSeconds',
  'knownModel',
  'targetFirstTokenMs',
  'targetBetweenTokensMs',
  'host',
  'port',
  'grpcPort',
  'maxGrpcStreams',
  'apiKey',
  'apiKeyFile',
  'cacheSecretFile',
  'corsOrigin',
  'allowedHost',
  'tlsCert',
  'tlsKey',
  'maxBodyBytes',
  'maxHeldMemoryBytes',
  'unknownFields',
  'trustRequestChatTemplate',
  'withoutPromptRule',
  'requestTimeoutSeconds',
  'streamStallTimeoutSeconds',
  'maxConnections',
  'defaultMaxTokens',
  'toolCallParser',
  'reasoningParser',
  'maxLogprobs',
  'maxQueuedRequests',
  'maxQueuedRequestsPerKey',
  'allowImageUrls',
  'mcpServer',
  'mcpTimeoutSeconds',
  'fairQueueing',
  'filesDir',
  'maxFileBytes',
  'maxFilesBytes',
  'maxFiles',
  'maxOfflineRequests',
  'accessLog',
  'traceRate',
  'metrics',
];

/** Options of a worker besides those of the engine. */
const OF_WORKER: readonly OptionName[] = [
  ...OF_BOTH,
  'host',
  'healthPort',
  'metrics',
  'model',
  'servedModelName',
  'lora',
  'enableLora',
  'revision',
  'mmproj',
  'weights',
  'outputWeights',
  'keepAlive',
  'modelMemoryBytes',
  'disaggregationMode',
  'maxHandOverBytes',
];

const MODEL_HELP =
  'The model to run: a Hugging Face folder, a GGUF file, an engine folder, or ORG/NAME[:QUANT] of the Hugging Face hub, which is downloaded once; NAME=PATH gives it another name. Of several each is loaded when it is wanted, within --model-memory-bytes.';

const WORKER_KEEP_ALIVE_HELP =
  'How long an unused model stays loaded where there are several, such as 5m or 1h30m, or in seconds; -1: until another one needs its memory.';

const WORKER_MEMORY_HELP =
  'Memory for the models where there are several, caches included. When it is full, the least recently used one makes room.';

const WORKER_LOG_HELP =
  "Log level. info: also a line for each request that it had, with the id in its gateway's lines, and one every 10 seconds while the model works.";

const GATEWAY_CACHE_HELP =
  "Folder for what workers send of their models, such as tokenizers, which serves a gateway's next start.";

const GATEWAY_FILES_HELP =
  'Folder for files and batches of this gateway alone (--state local). It outlives the gateway; unfinished batches continue at the next start.';

/** Options of `skein gateway`. */
export function gatewayOptions(): Option[] {
  return called(
    OPTIONS.filter(({ name }) => OF_GATEWAY.includes(name)),
    { cacheDir: GATEWAY_CACHE_HELP, filesDir: GATEWAY_FILES_HELP },
  );
}

/** Options of `skein work`. */
export function workOptions(): Option[] {
  const own = OPTIONS.filter(({ name, engine }) => engine !== null || OF_WORKER.includes(name));
  return called(own, {
    model: MODEL_HELP,
    logLevel: WORKER_LOG_HELP,
    keepAlive: WORKER_KEEP_ALIVE_HELP,
    modelMemoryBytes: WORKER_MEMORY_HELP,
  });
}

/** Options of which some mean something of their own at this end. */
function called(options: readonly Option[], help: Partial<Record<OptionName, string>>): Option[] {
  return options.map((option) => {
    const own = help[option.name];
    return own === undefined ? option : { ...option, flag: { ...option.flag, help: own } };
  });
}
