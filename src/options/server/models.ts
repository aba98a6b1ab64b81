import { listOf, NAME, oneOf, rule, SWITCH, type Values, wholeNumber } from '../../../base/option-values.js';
import { KEEP_ALIVE_FORM, keepAliveMs } from '../keep-alive.js';
import { DAY_SECONDS, NAMES, OF_CLIENTS, ofModel, ofServer } from './server-option.js';

const PATHS = listOf('a path, or NAME=PATH, or a list of these');
const isKeepAlive = (value: unknown) =>
  (typeof value === 'string' || typeof value === 'number') && keepAliveMs(value) !== null;
/** A time that a model stays loaded. */
const KEEP_ALIVE: Values<string | number> = {
  ...rule<string | number>(KEEP_ALIVE_FORM, isKeepAlive),
  kind: 'text',
};
const REPOSITORY = 'Model repository';
const ADAPTERS = 'LoRA adapters';
const ON_DEMAND = 'Models on demand';

/** Options of what is served: models, adapters, the model repository, models on demand. */
export const MODEL_OPTIONS = {
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
};
