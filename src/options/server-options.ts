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
import { KEEP_ALIVE_FORM, keepAliveMs } from '../serving/on-demand/keep-alive.js';

/** An option of the server or a model that the engine does not know, under its plain name. */
export interface ServerOption<T = unknown, Configured = unknown> {
  values: Values<T>;
  /** Level of the option; model: each entry of `models` in a file may have its own. */
  level: 'server' | 'model';
  flag: FlagSpec;
  /** True where `skein batch`, which has no clients, takes the option too. */
  isForBatch: boolean;
  /** Name of the option in the in-process host, where that differs; else null. */
  hostField: string | null;
  /** Exists for the type alone; no object has this field. */
  readonly configured?: Configured;
}

interface Where {
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
  return { values, level: 'server', flag, isForBatch: true, hostField: null, ...where };
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
const DAY_SECONDS = 86_400;
const LONGEST_QUEUE = wholeNumber(1, 1_000_000);

/** Options of the server's part that Skein.load takes too. */
export const LOADING_OPTIONS = {
  /** Branch, tag or commit of a `model` from the hub; default main. */
  revision: ofModel(NAME, {
    group: 'Models',
    metavar: 'REVISION',
    help: 'branch, tag or commit of a model from the hub',
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
    help: 'precision of the weights; stored keeps the numbers of the checkpoint; auto is stored, int4 or int8 for checkpoints of up to 8 bits, else bf16',
  }),
  /** Precision of the embedding and the output layer; auto, the default: that of the weights, int8 with int4, stored for K-quants. */
  outputWeights: ofModel(oneOf('auto', 'f32', 'bf16', 'int8', 'stored'), {
    group: 'Models',
    default: 'auto',
    isForAsking: true,
    help: 'precision of the embedding and the output layer; auto is that of the weights, int8 with int4, stored for K-quants',
  }),
  /** Folder for engines built from models; default: the user's cache directory. */
  cacheDir: ofServer(NAME, {
    group: 'Models',
    metavar: 'DIR',
    help: 'folder for engines built from models',
    defaultText: "the user's cache directory",
    isForAsking: true,
  }),
  /**
   * Where ranks that are started elsewhere come to, by `skein rank` or a GptManager: host:port to listen at, or a path with a / for ranks
   * of this machine. Needs tensorParallelSize or pipelineParallelSize. Default: this process starts the ranks.
   */
  ranksAddress: ofModel(RANKS_ADDRESS, {
    group: 'Running',
    metavar: 'HOST:PORT',
    help: 'wait there for the other ranks, which "skein rank" starts, instead of starting them; a path with a / is for ranks of this machine',
    defaultText: 'ranks are started on this machine',
  }),
  /** A file with the secret of the ranks, at least 16 characters; needed with host:port. */
  ranksSecretFile: ofModel(NAME, {
    group: 'Running',
    metavar: 'FILE',
    defaultText: 'none',
    help: 'file with a secret of at least 16 characters, which all ranks have; needed with HOST:PORT',
  }),
  /**
   * Seconds that the ranks of ranksAddress may take to come for the first time, after which the start fails; default 120. Ranks that are lost
   * later are waited for without end.
   */
  joinTimeoutSeconds: ofModel(wholeNumber(1, DAY_SECONDS), {
    group: 'Running',
    unit: 'seconds',
    default: DEFAULT_JOIN_TIMEOUT_MS / 1000,
    help: 'how long the start waits for the ranks of --ranks-address; ranks that are lost later are waited for without end',
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
      help: 'requests that may wait; more are refused with 429',
    },
    { hostField: 'maxQueueSize' },
  ),
  /** Number of requests of one queueKey that may wait; default: maxQueuedRequests. */
  maxQueuedRequestsPerKey: ofServer(
    LONGEST_QUEUE,
    {
      group: REQUESTS,
      unit: 'requests',
      formerly: 'maxQueueSizePerKey',
      help: 'waiting requests of one API key; more are refused with 429',
      defaultText: '--max-queued-requests',
    },
    { isForBatch: false, hostField: 'maxQueueSizePerKey' },
  ),
  /** Chooses the next request by deficit round robin over queueKeys, in tokens; default false. */
  fairQueueing: ofServer(
    SWITCH,
    {
      group: REQUESTS,
      default: false,
      help: 'API keys take turns (deficit round robin, in tokens), so that a flood of requests from one key does not starve another',
    },
    { isForBatch: false, hostField: 'fairQueueing' },
  ),
};

/** Options of the server alone. */
const SERVING_OPTIONS = {
  model: ofServer(PATHS, {
    group: 'Models',
    isCommon: true,
    metavar: '[NAME=]PATH',
    help: 'a model: a Hugging Face directory, a GGUF file or a folder with one, an engine directory, or ORG/NAME[:QUANT] of the Hugging Face hub, which is downloaded if it is not in the cache; repeat the option for further models, each with a name (in the variable separate them by commas)',
    defaultText: 'the demo model',
  }),
  servedModelName: ofServer(NAMES, {
    group: 'Models',
    metavar: 'NAME',
    help: 'the name of the model for clients, if there is only one model; repeat the option for further names',
    defaultText: "the model's folder or file name",
  }),
  lora: ofModel(listOf('NAME=PATH, or a list of these'), {
    group: ADAPTERS,
    metavar: '[NAME=]PATH',
    aliases: ['loraModules'],
    help: 'a LoRA adapter of the model, as NAME=PATH, or a path whose last part is then the name; clients name it as a model: a folder of PEFT, a GGUF file of llama.cpp, or ORG/NAME of the Hugging Face hub; repeat the option for further adapters (with several models: {"name": ..., "path": ..., "base_model_name": ...})',
    defaultText: 'none',
  }),
  enableLora: ofModel(SWITCH, {
    group: ADAPTERS,
    help: 'the model takes LoRA adapters, though none is given; --no-enable-lora: it takes none, though clients may load some into other models',
    defaultText: 'with --lora or --allow-runtime-lora',
  }),
  allowRuntimeLora: ofServer(
    SWITCH,
    {
      group: ADAPTERS,
      default: false,
      help: 'clients may load and unload LoRA adapters that lie in --lora-dir (admins only, where there are several API keys)',
    },
    OF_CLIENTS,
  ),
  loraDir: ofServer(
    NAME,
    {
      group: ADAPTERS,
      metavar: 'DIR',
      help: 'folder of the adapters that clients may load with --allow-runtime-lora',
      defaultText: 'none',
    },
    OF_CLIENTS,
  ),
  modelRepository: ofServer(
    listOf('a folder, or a list of folders'),
    {
      group: REPOSITORY,
      metavar: 'DIR',
      help: 'folder of models as Triton lays them out, NAME/config.pbtxt and NAME/1/...; repeated, several; code in these folders is run',
      defaultText: 'none',
    },
    OF_CLIENTS,
  ),
  modelControlMode: ofServer(
    oneOf('none', 'explicit', 'poll'),
    {
      group: REPOSITORY,
      default: 'none',
      help: 'what changes the models of the folders that are loaded: nothing once all are; clients, who load and unload them; or the folders, which are looked at again and again',
    },
    OF_CLIENTS,
  ),
  loadModel: ofServer(
    NAMES,
    {
      group: REPOSITORY,
      metavar: 'NAME',
      help: 'with --model-control-mode explicit: a model of the folders that is loaded at the start; repeated, several; * for all',
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
      help: 'time between two looks at the folders with --model-control-mode poll',
    },
    OF_CLIENTS,
  ),
  exitOnError: ofServer(
    SWITCH,
    {
      group: REPOSITORY,
      default: true,
      help: 'end the start where a model of the folders that is to be loaded cannot be (--no-exit-on-error: log why, and serve the others)',
    },
    OF_CLIENTS,
  ),
  allowModelUpload: ofServer(
    SWITCH,
    {
      group: REPOSITORY,
      default: false,
      help: 'a client who loads a model may bring its configuration and files, code among them',
    },
    OF_CLIENTS,
  ),
  allowSharedMemory: ofServer(
    SWITCH,
    {
      group: REPOSITORY,
      default: false,
      help: 'clients on this machine may have tensors in shared memory (/dev/shm, on Linux): they name objects there which this server then reads and writes (admins only, where there are several API keys)',
    },
    OF_CLIENTS,
  ),
  maxSharedMemoryRegions: ofServer(
    wholeNumber(1, 10_000),
    {
      group: REPOSITORY,
      unit: 'regions',
      default: 64,
      help: 'regions of shared memory that may be registered at once',
    },
    OF_CLIENTS,
  ),
  maxSharedMemoryRegionBytes: ofServer(
    wholeNumber(1, Number.MAX_SAFE_INTEGER),
    {
      group: REPOSITORY,
      unit: 'bytes',
      default: 256 * 1024 * 1024,
      help: 'longest region of shared memory; the inputs of one request are at most --max-body-bytes of it',
    },
    OF_CLIENTS,
  ),
  maxSharedMemoryBytes: ofServer(
    wholeNumber(1, Number.MAX_SAFE_INTEGER),
    {
      group: REPOSITORY,
      unit: 'bytes',
      default: 1024 * 1024 * 1024,
      help: 'all registered regions of shared memory together',
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
      help: 'memory for answers of models whose configuration has response_cache, which the same request is then given again; 0 for none',
    },
    OF_CLIENTS,
  ),
  serverId: ofServer(
    NAME,
    {
      group: REPOSITORY,
      metavar: 'NAME',
      default: 'skein',
      help: 'name of the server in GET /v2',
    },
    OF_CLIENTS,
  ),
  modelsDir: ofServer(
    NAME,
    {
      group: ON_DEMAND,
      metavar: 'DIR',
      help: 'folder of models that are loaded when a request names them: GGUF files, folders of Hugging Face, and what clients pull from the hub',
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
      help: "time that a model of --models-dir stays loaded after its last request, such as 5m or 1h30m, or in seconds; 0 unloads it after the answer, -1 keeps it; a request of Ollama's API may say otherwise",
    },
    OF_CLIENTS,
  ),
  modelMemoryBytes: ofServer(
    wholeNumber(1, Number.MAX_SAFE_INTEGER),
    {
      group: ON_DEMAND,
      unit: 'bytes',
      help: 'memory that the models of --models-dir take together, their caches included: where another one is wanted, those used least recently are unloaded',
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
      help: 'time that a request waits for a model of --models-dir: for its conversion at first, for memory, and for its load',
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
      help: 'address to listen on',
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
      help: 'port to listen on; 0 takes a free one',
    },
    OF_CLIENTS,
  ),
  grpcPort: ofServer(
    wholeNumber(0, 65535),
    {
      group: ACCESS,
      metavar: 'N',
      help: 'port for gRPC (the Open Inference Protocol, and health), on the same address; Triton has 8001; 0 takes a free one',
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
      help: 'calls of gRPC that one connection may have at once; its client waits with more; all connections together have twice as many, and are refused more',
    },
    OF_CLIENTS,
  ),
  apiKey: ofServer(
    TEXTS,
    {
      group: ACCESS,
      isCommon: true,
      metavar: 'KEY',
      help: 'key that clients must send; repeat the option for several keys',
      defaultText: 'none',
    },
    OF_CLIENTS,
  ),
  apiKeyFile: ofServer(
    NAME,
    {
      group: ACCESS,
      metavar: 'FILE',
      help: 'further keys, as JSON or YAML: a list of {name, key, weight, admin, group}; weight is the share of the key with --fair-queueing (default 1); an admin key may reset the cache and see the ids of all requests (default false; true if it is the only key); keys of one group share their cached prompts (default: no sharing)',
      defaultText: 'none',
    },
    OF_CLIENTS,
  ),
  corsOrigin: ofServer(
    TEXTS,
    {
      group: ACCESS,
      metavar: 'ORIGIN',
      help: 'origin of web pages that may use the server besides its own pages, such as https://example.com; repeat the option for several; loopback for pages of this machine (any port of localhost, 127.0.0.0/8 or [::1]), * for all and none for none',
      defaultText: 'loopback',
    },
    OF_CLIENTS,
  ),
  allowedHost: ofServer(
    NAMES,
    {
      group: ACCESS,
      metavar: 'NAME',
      help: 'further host name that requests may have in their Host header besides localhost, 127.0.0.0/8 and [::1], such as host.docker.internal, or .example.com for all names below it; repeat the option for several; * for any; once given, requests with other names are refused',
      defaultText: 'any with API keys or if --host is no loopback address, else none',
    },
    OF_CLIENTS,
  ),
  tlsCert: ofServer(
    NAME,
    {
      group: ACCESS,
      metavar: 'FILE',
      help: 'certificate chain in PEM, with which the server speaks HTTPS; needs --tls-key',
      defaultText: 'none',
    },
    OF_CLIENTS,
  ),
  tlsKey: ofServer(
    NAME,
    {
      group: ACCESS,
      metavar: 'FILE',
      help: 'private key of the certificate, in PEM',
      defaultText: 'none',
    },
    OF_CLIENTS,
  ),
  maxBodyBytes: ofServer(wholeNumber(1024, 2 ** 31 - 1), {
    group: REQUESTS,
    unit: 'bytes',
    formerly: 'maxBodySize',
    default: 16 * 1024 * 1024,
    help: 'longest body of a request; a longer one is refused with 413',
  }),
  maxHeldMemoryBytes: ofServer(wholeNumber(2 ** 20, Number.MAX_SAFE_INTEGER), {
    group: REQUESTS,
    unit: 'bytes',
    formerly: 'maxHeldMemory',
    help: 'estimated memory that all requests together may take: bodies, waiting prompts, answers and stored responses; a request that does not fit is refused with 429, before its body is read if its length is known',
    defaultText: 'a quarter of what the models leave',
  }),
  filesDir: ofServer(
    NAME,
    {
      group: BATCHES,
      metavar: 'DIR',
      help: 'folder of the files that clients upload for batches (/v1/files), and of the batches: it outlives the server, and the next one goes on with what is under way',
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
      help: 'longest file that a client may upload; a longer one is refused with 413',
    },
    OF_CLIENTS,
  ),
  maxFilesBytes: ofServer(
    wholeNumber(1, Number.MAX_SAFE_INTEGER),
    {
      group: BATCHES,
      unit: 'bytes',
      default: DEFAULT_FILE_LIMITS.maxBytes,
      help: 'all files together, answers of batches among them; of several API keys one may have half',
    },
    OF_CLIENTS,
  ),
  maxFiles: ofServer(
    wholeNumber(1, 1_000_000),
    {
      group: BATCHES,
      unit: 'files',
      default: DEFAULT_FILE_LIMITS.maxFiles,
      help: 'files that may be stored at once, answers of batches among them; of several API keys one may have half',
    },
    OF_CLIENTS,
  ),
  maxOfflineRequests: ofServer(
    wholeNumber(1, 1_000_000),
    {
      group: BATCHES,
      unit: 'requests',
      help: 'requests of all batches that run at once; others go first where both wait',
      defaultText: 'half of --max-active-requests',
    },
    OF_CLIENTS,
  ),
  unknownFields: ofServer(oneOf('refuse', 'warn', 'ignore'), {
    group: REQUESTS,
    default: 'warn',
    help: 'what happens to fields of a body that nobody knows, in nested objects too: refuse with 400, or answer without them and warn in the header X-Unknown-Fields and the log, or ignore them; a known field that this server does not support is always refused',
  }),
  trustRequestChatTemplate: ofServer(SWITCH, {
    group: REQUESTS,
    default: false,
    help: 'requests may bring chat templates in the field chat_template: code that runs in a thread of its own, for 2 seconds and in 64 MiB at most',
  }),
  requestTimeoutSeconds: ofServer(wholeNumber(0, 2_000_000), {
    group: REQUESTS,
    unit: 'seconds',
    formerly: 'requestTimeout',
    default: 0,
    help: 'time, including the wait in the queue, after which an answer ends with the text that it has (finish_reason length, stop_reason time_limit); a request may set less with time_limit_ms; 0 for no limit',
  }),
  streamStallTimeoutSeconds: ofServer(
    wholeNumber(1, DAY_SECONDS),
    {
      group: ACCESS,
      unit: 'seconds',
      formerly: 'streamStallTimeout',
      default: 30,
      help: 'a client that does not read its answer for this long is disconnected, and its request ends; a client that stops in the middle of a body is refused with 408',
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
      help: 'connections that may be open at once; requests on further ones are refused with 503',
    },
    OF_CLIENTS,
  ),
  defaultMaxTokens: ofModel(wholeNumber(1, MAX_COUNT), {
    group: REQUESTS,
    unit: 'tokens',
    default: 1024,
    help: 'longest chat answer if the request sets no limit',
  }),
  toolCallParser: ofModel(
    oneOf('auto', 'hermes', 'llama3_json', 'pythonic', 'mistral', 'qwen3_coder', 'deepseek_v3'),
    {
      group: REQUESTS,
      metavar: 'FORMAT',
      default: 'auto',
      help: 'format in which the model writes function calls; auto: as in its chat template',
    },
  ),
  reasoningParser: ofModel(oneOf('auto', 'deepseek_r1', 'qwen3', 'none'), {
    group: REQUESTS,
    metavar: 'FORMAT',
    default: 'auto',
    isForAsking: true,
    help: 'how to separate reasoning from the answer; auto: by the chat template',
  }),
  maxLogprobs: ofModel(wholeNumber(-1, MAX_COUNT), {
    group: REQUESTS,
    metavar: 'N',
    default: 20,
    help: 'most top log-probs per token that a request may ask for; -1: the whole vocabulary',
  }),
  drainTimeoutSeconds: ofServer(
    wholeNumber(0, DAY_SECONDS),
    {
      group: 'Running',
      unit: 'seconds',
      formerly: 'drainTimeout',
      default: 30,
      help: 'how long running answers may continue after SIGTERM or SIGINT',
    },
    OF_CLIENTS,
  ),
  exitOnFailure: ofServer(
    SWITCH,
    {
      group: 'Running',
      default: true,
      help: 'end the process when the engine has died and cannot be restarted (--no-exit-on-failure: keep running and answer 503)',
    },
    OF_CLIENTS,
  ),
  accessLog: ofServer(
    SWITCH,
    {
      group: 'Running',
      default: false,
      help: 'write a line of JSON for each request to stderr, whatever --log-level is; the line contains no text of a prompt',
    },
    OF_CLIENTS,
  ),
  tracing: ofServer(
    SWITCH,
    {
      group: 'Running',
      help: 'send traces of requests, by OpenTelemetry; without --trace-endpoint to where the variables OTEL_EXPORTER_OTLP_ENDPOINT and the like say (skein setup tracing installs what that needs)',
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
      help: 'receiver of traces by OTLP over HTTP, such as http://localhost:4318; /v1/traces is added where the address has no path',
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
      help: 'one of so many requests is traced, beside those whose client traces them; 0 for these alone',
    },
    OF_CLIENTS,
  ),
  metrics: ofServer(
    SWITCH,
    {
      group: 'Running',
      default: true,
      help: 'count for Prometheus, and answer GET /metrics (--no-metrics: neither)',
    },
    OF_CLIENTS,
  ),
  logLevel: ofServer(oneOf('trace', 'debug', 'info', 'warn', 'error', 'silent'), {
    group: 'Running',
    isCommon: true,
    metavar: 'LEVEL',
    default: 'warn',
    help: 'level of the log, which is JSON on stderr; info adds a line for each request, debug also for /health, /live and /metrics',
  }),
  logFile: ofServer(
    NAME,
    {
      group: 'Running',
      metavar: 'FILE',
      help: 'file for the log and the access log; warnings and errors go to stderr too; SIGHUP opens it anew by its name, for programs that rotate logs',
      defaultText: 'stderr',
    },
    OF_CLIENTS,
  ),
};

/** The server's part of the table of options; the engine's is in callbacks/options/. */
export const SERVER_OPTIONS = { ...SERVING_OPTIONS, ...LOADING_OPTIONS };
