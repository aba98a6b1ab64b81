import {
  listOf,
  MAX_COUNT,
  NAME,
  oneOf,
  rule,
  SWITCH,
  type Values,
  wholeNumber,
} from '../../base/option-values.js';
import { ADDRESS_FORMS, addressIn } from '../../callbacks/group-address.js';
import type { FlagSpec, FlagText } from '../../callbacks/options/option.js';
import { DEFAULT_JOIN_TIMEOUT_MS } from '../../callbacks/ranks-options.js';
import { WIRE_FORMATS } from '../../cluster/zeromq/kv-event-wire.js';
import { KEEP_ALIVE_FORM, keepAliveMs } from './keep-alive.js';

/** An option of the server or a model that the engine does not know, under its plain name. */
export interface ServerOption<T = unknown, Configured = unknown> {
  values: Values<T>;
  /** Level of the option; model: each entry of `models` in a file may have its own. */
  level: 'server' | 'model';
  flag: FlagSpec;
  /** True where `skein serve` takes the option; false: it is of the work queue alone. */
  isForServe: boolean;
  /** True where `skein batch`, which has no clients, takes the option too. */
  isForBatch: boolean;
  /** Name of the option in the in-process host, where that differs; else null. */
  hostField: string | null;
  /** Exists for the type alone; no object has this field. */
  readonly configured?: Configured;
}

interface Where {
  isForServe?: boolean;
  isForBatch?: boolean;
  hostField?: string;
}

function ofServer<T>(
  values: Values<T>,
  flag: FlagText & { default: NoInfer<T> },
  where?: Where,
): ServerOption<T, T>;
function ofServer<T>(values: Values<T>, flag: FlagText, where?: Where): ServerOption<T, T | undefined>;
function ofServer<T>(values: Values<T>, flag: FlagSpec, where: Where = {}): ServerOption<T> {
  return { values, level: 'server', flag, isForServe: true, isForBatch: true, hostField: null, ...where };
}

function ofModel<T>(
  values: Values<T>,
  flag: FlagText & { default: NoInfer<T> },
  where?: Where,
): ServerOption<T, T>;
function ofModel<T>(values: Values<T>, flag: FlagText, where?: Where): ServerOption<T, T | undefined>;
function ofModel<T>(values: Values<T>, flag: FlagSpec, where: Where = {}): ServerOption<T> {
  return { ...ofServer(values, flag, where), level: 'model' };
}

const PATHS = listOf('a path, or NAME=PATH, or a list of these');
const TEXTS = listOf('a text that is not empty, or a list of such');
const isPrefix = (value: unknown) =>
  typeof value === 'string' && value.length <= 128 && /^[\w-]+(\.[\w-]+)*$/.test(value);
/** Beginning of the subjects of the work queue, and of its stream's name. */
const PREFIX: Values<string> = {
  ...rule<string>('words of letters, digits, - and _ with dots between them', isPrefix),
  kind: 'text',
};
const NAMES = listOf('a name, or a list of names');
const isKeepAlive = (value: unknown) =>
  (typeof value === 'string' || typeof value === 'number') && keepAliveMs(value) !== null;
/** A time that a model stays loaded. */
const KEEP_ALIVE: Values<string | number> = {
  ...rule<string | number>(KEEP_ALIVE_FORM, isKeepAlive),
  kind: 'text',
};
/** Where ranks meet. */
const RANKS_ADDRESS: Values<string> = {
  ...rule<string>(ADDRESS_FORMS, (value) => typeof value === 'string' && addressIn(value) !== null),
  kind: 'text',
};
/** Bounds of what clients may store. */
export const DEFAULT_FILE_LIMITS = {
  maxFileBytes: 200 * 1024 * 1024,
  maxBytes: 4 * 1024 * 1024 * 1024,
  maxFiles: 1000,
};
const OF_CLIENTS = { isForBatch: false };
const ACCESS = 'Address and access';
const REPOSITORY = 'Model repository';
const REQUESTS = 'Requests and answers';
const ADAPTERS = 'LoRA adapters';
const BATCHES = 'Files and batches';
const ON_DEMAND = 'Models on demand';
const KV_EVENTS = 'Events of the KV cache';
const OF_QUEUE = { isForServe: false, isForBatch: false };
const QUEUE = 'Work queue';
const DAY_SECONDS = 86_400;
const LONGEST_QUEUE = wholeNumber(1, 1_000_000);

/** Options of the server's part that Skein.load takes too. */
export const LOADING_OPTIONS = {
  /** Branch, tag or commit of a `model` from the hub; default main. */
  revision: ofModel(NAME, {
    group: 'Models',
    metavar: 'REVISION',
    help: 'Branch, tag or commit of a model from the hub.',
    defaultText: 'main',
    isForAsking: true,
  }),
  /**
   * Precision of the weights. stored: each matrix in the numbers that the checkpoint has. auto, the default: stored, int4 or
   * int8 for checkpoints of up to 8 bits, else bf16.
   */
  weights: ofModel(oneOf('auto', 'f32', 'bf16', 'int8', 'int4', 'stored'), {
    group: 'Models',
    isCommon: true,
    default: 'auto',
    isForAsking: true,
    help: 'Precision of the weights. stored: the numbers of the checkpoint; auto: stored, int4 or int8 for checkpoints of up to 8 bits, else bf16.',
  }),
  /** Precision of the embedding and the output layer; auto, the default: that of the weights, int8 with int4, stored where a type has kernels of its own. */
  /** Name of one of the model's chat templates, or a file with one. Default: default, or tool_use for conversations with functions. */
  chatTemplate: ofModel(NAME, {
    group: 'Models',
    metavar: 'NAME_OR_FILE',
    isForAsking: true,
    defaultText: 'default; tool_use, where the model has it, for conversations with functions',
    help: 'Chat template: the name of one that the model has, or a file.',
  }),
  outputWeights: ofModel(oneOf('auto', 'f32', 'bf16', 'int8', 'stored'), {
    group: 'Models',
    default: 'auto',
    isForAsking: true,
    help: 'Precision of the embedding and the output layer. auto: as the weights; int8 with int4, stored where a type has kernels of its own.',
  }),
  /**
   * auto, the default: settings of sampling that the model's makers recommend, in generation_config.json or a GGUF, hold for requests that
   * have none of their own. none: they are not read.
   */
  generationConfig: ofModel(oneOf('auto', 'none'), {
    group: 'Models',
    default: 'auto',
    isForAsking: true,
    help: "Defaults of requests. auto: the sampling settings that the model's files recommend; none: Skein's own.",
  }),
  /** Folder for engines built from models; default: ~/.cache/skein, or skein in XDG_CACHE_HOME. */
  cacheDir: ofServer(NAME, {
    group: 'Models',
    metavar: 'DIR',
    help: 'Folder for converted models, each a folder that can be deleted while nothing runs. XDG_CACHE_HOME moves the default.',
    defaultText: '~/.cache/skein',
    isForAsking: true,
  }),
  /**
   * Where ranks that are started elsewhere come to, by `skein rank` or a GptManager: host:port to listen at, or a path with a / for ranks
   * of this machine. Needs tensorParallelSize or pipelineParallelSize. Default: this process starts the ranks.
   */
  ranksAddress: ofModel(RANKS_ADDRESS, {
    group: 'Running',
    metavar: 'HOST:PORT',
    help: 'Wait there for the other ranks, which "skein rank" starts, instead of starting them; a path with a / is for ranks of this machine.',
    defaultText: 'ranks are started on this machine',
  }),
  /** A file with the secret of the ranks, at least 16 characters; needed with host:port. */
  ranksSecretFile: ofModel(NAME, {
    group: 'Running',
    metavar: 'FILE',
    defaultText: 'none',
    help: 'File with a secret of at least 16 characters, which all ranks have; needed with HOST:PORT.',
  }),
  /**
   * Seconds that the ranks of ranksAddress may take to come for the first time, after which the start fails; default 120. Ranks that are lost
   * later are waited for without end.
   */
  joinTimeoutSeconds: ofModel(wholeNumber(1, DAY_SECONDS), {
    group: 'Running',
    unit: 'seconds',
    default: DEFAULT_JOIN_TIMEOUT_MS / 1000,
    help: 'How long the start waits for the ranks of --ranks-address; ranks that are lost later are waited for without end.',
  }),
  /**
   * Number of requests that may wait beside those in the engine before more are refused with a QueueFullError; default
   * 256.
   */
  maxQueuedRequests: ofModel(
    LONGEST_QUEUE,
    {
      group: REQUESTS,
      unit: 'requests',
      formerly: 'maxQueueSize',
      default: 256,
      help: 'Most requests in the queue; more get 429.',
    },
    { hostField: 'maxQueueSize' },
  ),
  /**
   * Number of requests of one queueKey that may wait. Default: maxQueuedRequests; with fairQueueing as many as there are
   * free places, which is half of them for one key alone.
   */
  maxQueuedRequestsPerKey: ofServer(
    LONGEST_QUEUE,
    {
      group: REQUESTS,
      unit: 'requests',
      formerly: 'maxQueueSizePerKey',
      help: 'Most queued requests of one API key; more get 429.',
      defaultText: '--max-queued-requests; with --fair-queueing as many as places are free',
    },
    { isForBatch: false, hostField: 'maxQueueSizePerKey' },
  ),
  /** Chooses the next request by deficit round robin over queueKeys, in tokens; default false. */
  fairQueueing: ofServer(
    SWITCH,
    {
      group: REQUESTS,
      default: false,
      help: 'Share the engine fairly between API keys, so that one busy key does not starve the others.',
    },
    { isForBatch: false, hostField: 'fairQueueing' },
  ),
  /**
   * Address of ZeroMQ where events of the KV cache are published in vLLM's format, such as tcp://*:5557, for routers that send requests
   * where their prompts are cached; default: none. Needs prefixCaching.
   */
  kvEventsEndpoint: ofModel(
    NAME,
    {
      group: KV_EVENTS,
      metavar: 'ADDRESS',
      help: "Address of ZeroMQ where events of the KV cache are published in vLLM's format, for routers: tcp://*:5557 listens, tcp://HOST:5557 connects.",
      defaultText: 'none',
    },
    OF_CLIENTS,
  ),
  /** Address where readers ask for events that they have lost; it listens. */
  kvEventsReplayEndpoint: ofModel(
    NAME,
    {
      group: KV_EVENTS,
      metavar: 'ADDRESS',
      help: 'Address where routers ask for events that they have lost, such as tcp://*:5558.',
      defaultText: 'none',
    },
    OF_CLIENTS,
  ),
  /** First frame of each message, by which readers subscribe; default: empty. */
  kvEventsTopic: ofModel(
    NAME,
    {
      group: KV_EVENTS,
      metavar: 'TEXT',
      help: 'First frame of each message, by which routers subscribe, such as kv@POD@MODEL for llm-d.',
      defaultText: 'empty',
    },
    OF_CLIENTS,
  ),
  /** Layout of an event: map, the default, as vLLM has it since 0.24, or array, as it had before. */
  kvEventsFormat: ofModel(
    oneOf(...WIRE_FORMATS),
    {
      group: KV_EVENTS,
      default: 'map',
      help: "Layout of an event in msgpack: map is vLLM's since 0.24, array the one before.",
    },
    OF_CLIENTS,
  ),
  /** Number of messages that readers can ask for again; default 10 000. They take 64 MiB at most. */
  kvEventsReplayBatches: ofModel(
    wholeNumber(1, 1_000_000),
    {
      group: KV_EVENTS,
      unit: 'batches',
      default: 10_000,
      help: 'Messages that routers can ask for again, at most 64 MiB of them.',
    },
    OF_CLIENTS,
  ),
  /** File of CZMQ or pyzmq with the public and the secret key of this side (CURVE): events are then encrypted. */
  kvEventsCurveKeyFile: ofModel(
    NAME,
    {
      group: KV_EVENTS,
      metavar: 'FILE',
      help: 'Keys of this side for CURVE (a .key_secret file of pyzmq or CZMQ): events are encrypted, and only readers that know the public key get them.',
      defaultText: 'no encryption',
    },
    OF_CLIENTS,
  ),
  /** Files with the public keys of the readers that may connect; where this side connects, one with the key of the other. */
  kvEventsCurvePeerFile: ofModel(
    listOf('a path, or a list of paths'),
    {
      group: KV_EVENTS,
      metavar: 'FILE',
      help: 'Public key of a reader that may connect (repeat the option for several), or of the side that is connected to.',
      defaultText: 'every reader that knows the public key of this side',
    },
    OF_CLIENTS,
  ),
};

/** Options of the server alone. */
const SERVING_OPTIONS = {
  model: ofServer(PATHS, {
    group: 'Models',
    isCommon: true,
    metavar: '[NAME=]PATH',
    help: 'The model to serve: a Hugging Face folder, a GGUF file, an engine folder, or ORG/NAME[:QUANT] of the Hugging Face hub, which is downloaded once. Repeat for several models, as NAME=PATH (in the variable: separated by commas).',
    defaultText: 'the demo model',
  }),
  servedModelName: ofServer(NAMES, {
    group: 'Models',
    metavar: 'NAME',
    help: 'Name of the model for clients, where there is one model. Repeat for further names.',
    defaultText: "the model's folder or file name",
  }),
  lora: ofModel(listOf('NAME=PATH, or a list of these'), {
    group: ADAPTERS,
    metavar: '[NAME=]PATH',
    aliases: ['loraModules'],
    help: 'LoRA adapter, as NAME=PATH or a path: a PEFT folder, a GGUF file of llama.cpp, or ORG/NAME of the hub. Clients name it as a model. Repeat for several (with several models: {"name": ..., "path": ..., "base_model_name": ...}).',
    defaultText: 'none',
  }),
  enableLora: ofModel(SWITCH, {
    group: ADAPTERS,
    help: 'Let the model take LoRA adapters although none is given. --no-enable-lora: it takes none.',
    defaultText: 'with --lora or --allow-runtime-lora',
  }),
  allowRuntimeLora: ofServer(
    SWITCH,
    {
      group: ADAPTERS,
      default: false,
      help: 'Let clients load and unload the LoRA adapters of --lora-dir (with several API keys admins only).',
    },
    OF_CLIENTS,
  ),
  loraDir: ofServer(
    NAME,
    {
      group: ADAPTERS,
      metavar: 'DIR',
      help: 'Folder of the LoRA adapters that clients may load.',
      defaultText: 'none',
    },
    OF_CLIENTS,
  ),
  modelRepository: ofServer(
    listOf('a folder, or a list of folders'),
    {
      group: REPOSITORY,
      metavar: 'DIR',
      help: "Folder of models in Triton's layout (NAME/config.pbtxt, NAME/1/...). Repeat for several. Code in these folders is run.",
      defaultText: 'none',
    },
    OF_CLIENTS,
  ),
  modelControlMode: ofServer(
    oneOf('none', 'explicit', 'poll'),
    {
      group: REPOSITORY,
      default: 'none',
      help: 'What changes the loaded models of these folders. none: nothing after the start; explicit: clients load and unload; poll: the folders are checked regularly.',
    },
    OF_CLIENTS,
  ),
  loadModel: ofServer(
    NAMES,
    {
      group: REPOSITORY,
      metavar: 'NAME',
      help: 'With --model-control-mode explicit: model to load at the start. Repeat for several; * alone for all.',
      defaultText: 'none',
    },
    OF_CLIENTS,
  ),
  modelPollSeconds: ofServer(
    wholeNumber(1, DAY_SECONDS),
    {
      group: REPOSITORY,
      unit: 'seconds',
      default: 15,
      help: 'With --model-control-mode poll: time between two checks of the folders.',
    },
    OF_CLIENTS,
  ),
  exitOnError: ofServer(
    SWITCH,
    {
      group: REPOSITORY,
      default: true,
      help: 'End the start if a model of the folders cannot be loaded. --no-exit-on-error: log why, and serve the others.',
    },
    OF_CLIENTS,
  ),
  allowModelUpload: ofServer(
    SWITCH,
    {
      group: REPOSITORY,
      default: false,
      help: "Let clients upload a model's configuration and files, code included, when they load it.",
    },
    OF_CLIENTS,
  ),
  allowSharedMemory: ofServer(
    SWITCH,
    {
      group: REPOSITORY,
      default: false,
      help: 'Let clients on this machine pass tensors in shared memory (/dev/shm; Linux only; with several API keys admins only).',
    },
    OF_CLIENTS,
  ),
  maxSharedMemoryRegions: ofServer(
    wholeNumber(1, 10_000),
    {
      group: REPOSITORY,
      unit: 'regions',
      default: 64,
      help: 'Most shared memory regions registered at once.',
    },
    OF_CLIENTS,
  ),
  maxSharedMemoryRegionBytes: ofServer(
    wholeNumber(1, Number.MAX_SAFE_INTEGER),
    {
      group: REPOSITORY,
      unit: 'bytes',
      default: 256 * 1024 * 1024,
      help: 'Largest shared memory region. One request reads at most --max-body-bytes of it.',
    },
    OF_CLIENTS,
  ),
  maxSharedMemoryBytes: ofServer(
    wholeNumber(1, Number.MAX_SAFE_INTEGER),
    {
      group: REPOSITORY,
      unit: 'bytes',
      default: 1024 * 1024 * 1024,
      help: 'Most bytes of all registered shared memory regions together.',
    },
    OF_CLIENTS,
  ),
  responseCacheBytes: ofServer(
    wholeNumber(0, Number.MAX_SAFE_INTEGER),
    {
      group: REPOSITORY,
      unit: 'bytes',
      aliases: ['responseCacheByteSize'],
      default: 0,
      help: 'Memory for cached answers of models with response_cache in their configuration. 0: off.',
    },
    OF_CLIENTS,
  ),
  rateLimit: ofServer(
    oneOf('off', 'execution_count'),
    {
      group: REPOSITORY,
      default: 'off',
      help: 'execution_count: an instance executes when the resources of its rate_limiter are free, those with the fewest executions first. off: rate_limiter is ignored.',
    },
    OF_CLIENTS,
  ),
  rateLimitResource: ofServer(
    listOf('NAME:COUNT, or a list of these'),
    {
      group: REPOSITORY,
      metavar: 'NAME:COUNT',
      help: 'With --rate-limit execution_count: copies of a resource. Repeat for several. By default as many as the instance with the largest need asks for.',
      defaultText: 'by need',
    },
    OF_CLIENTS,
  ),
  serverId: ofServer(
    NAME,
    {
      group: REPOSITORY,
      metavar: 'NAME',
      default: 'skein',
      help: 'Server name in GET /v2.',
    },
    OF_CLIENTS,
  ),
  modelsDir: ofServer(
    NAME,
    {
      group: ON_DEMAND,
      metavar: 'DIR',
      help: 'Folder of models that are loaded when a request names them: GGUF files, Hugging Face folders, and models that clients pull.',
      defaultText: 'none',
    },
    OF_CLIENTS,
  ),
  keepAlive: ofServer(
    KEEP_ALIVE,
    {
      group: ON_DEMAND,
      metavar: 'DURATION',
      default: '5m',
      help: "How long an unused model of --models-dir stays loaded, such as 5m or 1h30m, or in seconds. 0: unload after each answer; -1: keep. A request of Ollama's API may say otherwise.",
    },
    OF_CLIENTS,
  ),
  modelMemoryBytes: ofServer(
    wholeNumber(1, Number.MAX_SAFE_INTEGER),
    {
      group: ON_DEMAND,
      unit: 'bytes',
      help: 'Memory for the models of --models-dir, caches included. When it is full, the least recently used model is unloaded.',
      defaultText: '80 % of what is free at the start',
    },
    OF_CLIENTS,
  ),
  modelLoadTimeoutSeconds: ofServer(
    wholeNumber(1, DAY_SECONDS),
    {
      group: ON_DEMAND,
      unit: 'seconds',
      default: 600,
      help: 'How long a request waits for a model of --models-dir to load.',
    },
    OF_CLIENTS,
  ),
  host: ofServer(
    NAME,
    {
      group: ACCESS,
      isCommon: true,
      metavar: 'ADDRESS',
      default: '127.0.0.1',
      help: 'Address to listen on. 0.0.0.0: all addresses of this machine.',
    },
    OF_CLIENTS,
  ),
  port: ofServer(
    wholeNumber(0, 65535),
    {
      group: ACCESS,
      isCommon: true,
      metavar: 'N',
      default: 8000,
      help: 'Port to listen on. 0 picks a free one.',
    },
    OF_CLIENTS,
  ),
  grpcPort: ofServer(
    wholeNumber(0, 65535),
    {
      group: ACCESS,
      metavar: 'N',
      help: 'Port for gRPC (Open Inference Protocol, health). Triton uses 8001; 0 picks a free one.',
      defaultText: 'no gRPC',
    },
    OF_CLIENTS,
  ),
  maxGrpcStreams: ofServer(
    wholeNumber(1, 1_000_000),
    {
      group: ACCESS,
      unit: 'streams',
      default: 1000,
      help: 'Most gRPC calls at once on one connection; all connections together may have twice as many.',
    },
    OF_CLIENTS,
  ),
  apiKey: ofServer(
    TEXTS,
    {
      group: ACCESS,
      isCommon: true,
      metavar: 'KEY',
      help: 'Key that clients must send. Repeat for several keys.',
      defaultText: 'none',
    },
    OF_CLIENTS,
  ),
  apiKeyFile: ofServer(
    NAME,
    {
      group: ACCESS,
      metavar: 'FILE',
      help: 'File of keys, JSON or YAML: a list of {name, key, weight, admin, group}. weight: share with --fair-queueing; admin: may reset the cache and see all request ids; group: keys that share cached prompts.',
      defaultText: 'none',
    },
    OF_CLIENTS,
  ),
  corsOrigin: ofServer(
    TEXTS,
    {
      group: ACCESS,
      metavar: 'ORIGIN',
      help: 'Origin of web pages that may use the server, such as https://example.com. Repeat for several. loopback: pages of this machine; *: all; none: none.',
      defaultText: 'loopback',
    },
    OF_CLIENTS,
  ),
  allowedHost: ofServer(
    NAMES,
    {
      group: ACCESS,
      metavar: 'NAME',
      help: 'Further host name of this server, such as host.docker.internal, or .example.com for all names below it. Repeat for several; * for any. Once given, requests with other Host headers are refused.',
      defaultText: 'any with API keys or if --host is no loopback address, else none',
    },
    OF_CLIENTS,
  ),
  tlsCert: ofServer(
    NAME,
    {
      group: ACCESS,
      metavar: 'FILE',
      help: 'Certificate chain in PEM, for HTTPS. Needs --tls-key.',
      defaultText: 'none',
    },
    OF_CLIENTS,
  ),
  tlsKey: ofServer(
    NAME,
    {
      group: ACCESS,
      metavar: 'FILE',
      help: 'Private key of the certificate, in PEM.',
      defaultText: 'none',
    },
    OF_CLIENTS,
  ),
  maxBodyBytes: ofServer(wholeNumber(1024, 2 ** 31 - 1), {
    group: REQUESTS,
    unit: 'bytes',
    formerly: 'maxBodySize',
    default: 16 * 1024 * 1024,
    help: 'Largest request body; a larger one gets 413.',
  }),
  maxHeldMemoryBytes: ofServer(wholeNumber(2 ** 20, Number.MAX_SAFE_INTEGER), {
    group: REQUESTS,
    unit: 'bytes',
    formerly: 'maxHeldMemory',
    help: 'Memory for all requests together (bodies, queued prompts, answers, stored responses), by estimate. A request that does not fit gets 429.',
    defaultText: 'a quarter of what the models leave',
  }),
  filesDir: ofServer(
    NAME,
    {
      group: BATCHES,
      metavar: 'DIR',
      help: 'Folder for files that clients upload for batches (/v1/files). It outlives the server; unfinished batches continue at the next start.',
      defaultText: 'a temporary folder, removed at the end',
    },
    OF_CLIENTS,
  ),
  maxFileBytes: ofServer(
    wholeNumber(1, Number.MAX_SAFE_INTEGER),
    {
      group: BATCHES,
      unit: 'bytes',
      default: DEFAULT_FILE_LIMITS.maxFileBytes,
      help: 'Largest file that a client may upload; a larger one gets 413.',
    },
    OF_CLIENTS,
  ),
  maxFilesBytes: ofServer(
    wholeNumber(1, Number.MAX_SAFE_INTEGER),
    {
      group: BATCHES,
      unit: 'bytes',
      default: DEFAULT_FILE_LIMITS.maxBytes,
      help: 'Most bytes of all stored files together. With several API keys one may use half.',
    },
    OF_CLIENTS,
  ),
  maxFiles: ofServer(
    wholeNumber(1, 1_000_000),
    {
      group: BATCHES,
      unit: 'files',
      default: DEFAULT_FILE_LIMITS.maxFiles,
      help: 'Most stored files. With several API keys one may use half.',
    },
    OF_CLIENTS,
  ),
  maxOfflineRequests: ofServer(
    wholeNumber(1, 1_000_000),
    {
      group: BATCHES,
      unit: 'requests',
      help: 'Most requests of batches that run at once. Interactive requests go first.',
      defaultText: 'half of --max-active-requests',
    },
    OF_CLIENTS,
  ),
  unknownFields: ofServer(oneOf('refuse', 'warn', 'ignore'), {
    group: REQUESTS,
    default: 'warn',
    help: 'What to do with unknown fields of a request. refuse: 400; warn: ignore them, and say so in X-Unknown-Fields and the log; ignore: ignore them. Known fields that are not supported are always refused.',
  }),
  trustRequestChatTemplate: ofServer(SWITCH, {
    group: REQUESTS,
    default: false,
    help: 'Let requests bring their own chat_template (code; limited to 2 seconds and 64 MiB).',
  }),
  requestTimeoutSeconds: ofServer(wholeNumber(0, 2_000_000), {
    group: REQUESTS,
    unit: 'seconds',
    formerly: 'requestTimeout',
    default: 0,
    help: 'Longest time for an answer, queueing included; then it ends with the text so far. A request may set less with time_limit_ms. 0: no limit.',
  }),
  streamStallTimeoutSeconds: ofServer(
    wholeNumber(1, DAY_SECONDS),
    {
      group: ACCESS,
      unit: 'seconds',
      formerly: 'streamStallTimeout',
      default: 30,
      help: 'Disconnect a client that does not read its answer, or stops in the middle of a body, for this long.',
    },
    OF_CLIENTS,
  ),
  maxConnections: ofServer(
    wholeNumber(1, 1_000_000),
    {
      group: ACCESS,
      unit: 'connections',
      metavar: 'N',
      default: 10_000,
      help: 'Most open connections; further ones get 503.',
    },
    OF_CLIENTS,
  ),
  defaultMaxTokens: ofModel(wholeNumber(1, MAX_COUNT), {
    group: REQUESTS,
    unit: 'tokens',
    defaultText: 'max_new_tokens of generation_config.json, else 1024',
    help: 'Max tokens of a chat answer when the request sets none.',
  }),
  toolCallParser: ofModel(
    oneOf('auto', 'hermes', 'llama3_json', 'pythonic', 'mistral', 'qwen3_coder', 'deepseek_v3'),
    {
      group: REQUESTS,
      metavar: 'FORMAT',
      default: 'auto',
      help: 'Format in which the model writes function calls. auto: by its chat template.',
    },
  ),
  reasoningParser: ofModel(oneOf('auto', 'deepseek_r1', 'qwen3', 'none'), {
    group: REQUESTS,
    metavar: 'FORMAT',
    default: 'auto',
    isForAsking: true,
    help: 'How to separate reasoning from the answer. auto: by the chat template.',
  }),
  maxLogprobs: ofModel(wholeNumber(-1, MAX_COUNT), {
    group: REQUESTS,
    metavar: 'N',
    default: 20,
    help: 'Most top log-probs per token that a request may ask for. -1: the whole vocabulary.',
  }),
  nats: ofServer(
    listOf('the address of a NATS server, such as nats://127.0.0.1:4222, or a list of such'),
    {
      group: QUEUE,
      metavar: 'URL',
      help: 'Address of the NATS server with the work queue, which needs JetStream; repeat the option for further servers of its cluster; tls://HOST:PORT for TLS.',
      defaultText: 'none; skein gateway and skein work need it',
    },
    OF_QUEUE,
  ),
  natsPrefix: ofServer(
    PREFIX,
    {
      group: QUEUE,
      metavar: 'NAME',
      default: 'skein',
      help: 'First word of all subjects, and of the name of the stream; gateways and workers with other prefixes know nothing of each other.',
    },
    OF_QUEUE,
  ),
  natsCredsFile: ofServer(
    NAME,
    { group: QUEUE, metavar: 'FILE', help: 'Credentials for NATS: a .creds file.', defaultText: 'none' },
    OF_QUEUE,
  ),
  natsNkeyFile: ofServer(
    NAME,
    {
      group: QUEUE,
      metavar: 'FILE',
      help: 'Credentials for NATS: a file with the seed of an nkey.',
      defaultText: 'none',
    },
    OF_QUEUE,
  ),
  natsUser: ofServer(
    NAME,
    {
      group: QUEUE,
      metavar: 'NAME',
      help: 'Credentials for NATS: a user, whose password is in --nats-password-file or the variable SKEIN_NATS_PASSWORD.',
      defaultText: 'none',
    },
    OF_QUEUE,
  ),
  natsPasswordFile: ofServer(
    NAME,
    { group: QUEUE, metavar: 'FILE', help: 'File with the password of --nats-user.', defaultText: 'none' },
    OF_QUEUE,
  ),
  natsTokenFile: ofServer(
    NAME,
    {
      group: QUEUE,
      metavar: 'FILE',
      help: 'Credentials for NATS: a file with a token; the variable SKEIN_NATS_TOKEN does as well.',
      defaultText: 'none',
    },
    OF_QUEUE,
  ),
  natsCaFile: ofServer(
    NAME,
    {
      group: QUEUE,
      metavar: 'FILE',
      help: "Certificates in PEM by which the NATS server's is checked; with it the connection has TLS.",
      defaultText: "the system's, with tls://",
    },
    OF_QUEUE,
  ),
  natsCertFile: ofServer(
    NAME,
    {
      group: QUEUE,
      metavar: 'FILE',
      help: 'Own certificate in PEM, for NATS servers that ask for one; needs --nats-key-file.',
      defaultText: 'none',
    },
    OF_QUEUE,
  ),
  natsKeyFile: ofServer(
    NAME,
    { group: QUEUE, metavar: 'FILE', help: 'Private key of --nats-cert-file, in PEM.', defaultText: 'none' },
    OF_QUEUE,
  ),
  natsStorage: ofServer(
    oneOf('file', 'memory'),
    {
      group: QUEUE,
      default: 'file',
      help: 'Where the NATS server keeps the work queue, if it is not there yet.',
    },
    OF_QUEUE,
  ),
  natsReplicas: ofServer(
    wholeNumber(1, 5),
    {
      group: QUEUE,
      metavar: 'N',
      default: 1,
      help: 'Servers of the NATS cluster that have the work queue, if it is not there yet.',
    },
    OF_QUEUE,
  ),
  natsMaxRequests: ofServer(
    LONGEST_QUEUE,
    {
      group: QUEUE,
      unit: 'requests',
      default: 10_000,
      help: 'Requests of all gateways that may lie in the work queue, if it is not there yet.',
    },
    OF_QUEUE,
  ),
  allowDifferentBits: ofServer(
    SWITCH,
    {
      group: QUEUE,
      default: false,
      help: 'An answer whose worker is lost may go on with a worker of other weights, another version or another instruction set, where no equal one is left: its rest may be another than without the loss.',
    },
    OF_QUEUE,
  ),
  workerWaitSeconds: ofServer(
    wholeNumber(0, DAY_SECONDS),
    {
      group: QUEUE,
      unit: 'seconds',
      default: 60,
      help: 'Time that a request waits in the gateway where no worker is there that may take it; then it gets an error.',
    },
    OF_QUEUE,
  ),
  workerSilenceSeconds: ofServer(
    wholeNumber(1, 3600),
    {
      group: QUEUE,
      unit: 'seconds',
      default: 6,
      help: 'Silence after which a worker counts as lost, and others go on with its requests; one whose process has ended is found out sooner.',
    },
    OF_QUEUE,
  ),
  routing: ofServer(
    oneOf('cache', 'any'),
    {
      group: QUEUE,
      default: 'cache',
      help: 'Where a gateway sends a request: cache, to the worker that has room, most of its prompt in the KV cache and little to do; any, to whichever worker asks first.',
    },
    OF_QUEUE,
  ),
  maxLocalPrefillLength: ofServer(
    wholeNumber(0, MAX_COUNT),
    {
      group: QUEUE,
      unit: 'tokens',
      default: 512,
      help: 'Longest prompt, without the part that is cached where it would be answered, that goes at once to a worker that answers it. Longer ones are computed by a prefill worker first, if one has room.',
    },
    OF_QUEUE,
  ),
  disaggregationMode: ofServer(
    oneOf('agg', 'prefill'),
    {
      group: QUEUE,
      default: 'agg',
      help: 'What the worker does: agg answers requests; prefill computes long prompts for workers that answer them.',
    },
    OF_QUEUE,
  ),
  maxHandOverBytes: ofServer(
    wholeNumber(0, Number.MAX_SAFE_INTEGER),
    {
      group: QUEUE,
      unit: 'bytes',
      default: 2 ** 30,
      help: 'Memory of a prefill worker for prompts that are computed and not fetched yet. What does not fit is computed by the worker that answers.',
    },
    OF_QUEUE,
  ),
  healthPort: ofServer(
    wholeNumber(0, 65535),
    {
      group: QUEUE,
      metavar: 'N',
      help: 'Port where a worker tells how it is: /health, /live and /metrics. 0 picks a free one.',
      defaultText: 'none',
    },
    OF_QUEUE,
  ),
  drainTimeoutSeconds: ofServer(
    wholeNumber(0, DAY_SECONDS),
    {
      group: 'Running',
      unit: 'seconds',
      formerly: 'drainTimeout',
      default: 30,
      help: 'How long running answers may continue after SIGTERM or SIGINT.',
    },
    OF_CLIENTS,
  ),
  exitOnFailure: ofServer(
    SWITCH,
    {
      group: 'Running',
      default: true,
      help: 'End the process when the engine has died and cannot be restarted. --no-exit-on-failure: keep running and answer 503.',
    },
    OF_CLIENTS,
  ),
  accessLog: ofServer(
    SWITCH,
    {
      group: 'Running',
      default: false,
      help: 'Log a line for each request, whatever --log-level is: model, status, tokens, times; never the text of a prompt.',
    },
    OF_CLIENTS,
  ),
  tracing: ofServer(
    SWITCH,
    {
      group: 'Running',
      help: 'Send traces by OpenTelemetry. Without --trace-endpoint the OTEL_EXPORTER_OTLP_... variables say where to ("skein setup tracing" installs what it needs).',
      defaultText: 'on with --trace-endpoint',
    },
    OF_CLIENTS,
  ),
  traceEndpoint: ofServer(
    NAME,
    {
      group: 'Running',
      metavar: 'URL',
      aliases: ['otlpTracesEndpoint'],
      help: 'OTLP receiver of traces, such as http://localhost:4318. /v1/traces is added to an address without a path.',
      defaultText: 'none',
    },
    OF_CLIENTS,
  ),
  traceRate: ofServer(
    wholeNumber(0, 2 ** 31 - 1),
    {
      group: 'Running',
      unit: 'requests',
      default: 1,
      help: 'Trace one of this many requests, besides those that their client traces. 0: only the latter.',
    },
    OF_CLIENTS,
  ),
  metrics: ofServer(
    SWITCH,
    {
      group: 'Running',
      default: true,
      help: 'Serve Prometheus metrics at /metrics. --no-metrics: count nothing.',
    },
    OF_CLIENTS,
  ),
  logLevel: ofServer(oneOf('trace', 'debug', 'info', 'warn', 'error', 'silent'), {
    group: 'Running',
    isCommon: true,
    metavar: 'LEVEL',
    default: 'warn',
    help: 'Log level. info: also a line per request, and one every 10 seconds while a model works; debug: also /health, /live and /metrics.',
  }),
  logFormat: ofServer(
    oneOf('json', 'text'),
    {
      group: 'Running',
      default: 'json',
      help: 'Format of the log lines: json for programs, text for people.',
    },
    OF_CLIENTS,
  ),
  logFile: ofServer(
    NAME,
    {
      group: 'Running',
      metavar: 'FILE',
      help: 'File for the log. Warnings and errors go to stderr too; SIGHUP reopens it, for log rotation.',
      defaultText: 'stderr',
    },
    OF_CLIENTS,
  ),
};

/** The server's part of the table of options; the engine's is in callbacks/options/. */
export const SERVER_OPTIONS = { ...SERVING_OPTIONS, ...LOADING_OPTIONS };
