import { listOf, NAME, oneOf, rule, SWITCH, type Values, wholeNumber } from '../../../base/option-values.js';
import { ADDRESS_FORMS, addressIn } from '../../../callbacks/group-address.js';
import { DEFAULT_JOIN_TIMEOUT_MS } from '../../../callbacks/ranks-options.js';
import { WIRE_FORMATS } from '../../../cluster/zeromq/kv-event-wire.js';
import { DAY_SECONDS, LONGEST_QUEUE, OF_CLIENTS, ofModel, ofServer, REQUESTS } from './server-option.js';

/** Where ranks meet. */
const RANKS_ADDRESS: Values<string> = {
  ...rule<string>(ADDRESS_FORMS, (value) => typeof value === 'string' && addressIn(value) !== null),
  kind: 'text',
};
const KV_EVENTS = 'Events of the KV cache';

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
  /** GGUF of the part that sees, of a model that is a GGUF (llama.cpp's mmproj). Default: the one next to the model with mmproj in its name. */
  mmproj: ofModel(NAME, {
    group: 'Models',
    metavar: 'FILE',
    isForAsking: true,
    defaultText: 'the one next to the model with mmproj in its name',
    help: "GGUF of the tower by which a GGUF sees pictures (llama.cpp's mmproj).",
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
    help: 'Wait here for the other ranks, which "skein rank" starts, instead of starting them; a path with a / is for ranks of this machine.',
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
    help: 'How long the start waits for the ranks of --ranks-address. Ranks that are lost later are awaited without end.',
  }),
  /**
   * Number of requests that may wait in addition to those in the engine before more are refused with a
   * QueueFullError; default 256.
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
  /** Fetches pictures whose https: addresses requests name, from public addresses; default false. */
  allowImageUrls: ofServer(SWITCH, {
    group: REQUESTS,
    default: false,
    help: 'Fetch pictures at https: addresses that requests name: public addresses only, no redirects, 12 MB and 5 seconds a request.',
  }),
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
