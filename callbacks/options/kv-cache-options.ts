import { MAX_INT32 } from '../../base/int32.js';
import { BYTES, COUNT, NAME, SHARE, SWITCH, wholeNumber } from '../../base/option-values.js';
import { DEFAULT_STATE_INTERVAL } from '../../kvcache/kv-cache-options.js';
import { ofGptManager, ofServe } from './option.js';

export const DEFAULT_KV_FRACTION = 0.9;
export const DEFAULT_STATE_FRACTION = 0.3;
export const DEFAULT_DISK_CACHE_BYTES = 16 * 2 ** 30;

/** The options of KvCacheConfig. */
export const KV_CACHE_OPTIONS = {
  /** Most tokens that the KV cache holds over all requests. Default: limited by freeGpuMemoryFraction alone. */
  maxTokens: ofServe(COUNT, {
    name: 'kvCacheTokens',
    seedName: 'kvCacheConfig.maxTokens',
    default: 'what memory allows',
    flag: {
      group: 'KV cache',
      isCommon: true,
      unit: 'tokens',
      formerly: 'maxTokens',
      defaultText: 'what memory allows',
      help: 'Size of the KV cache in tokens, shared by all requests.',
    },
  }),
  /**
   * Most tokens, itself included, that each token attends to. A request holds blocks for no more than these, and may be
   * longer than the pool. Default: the model's sliding window if it has one, else all tokens.
   */
  maxAttentionWindow: ofServe(COUNT, {
    name: 'attentionWindowTokens',
    seedName: 'kvCacheConfig.maxAttentionWindow',
    default: "the model's",
    flag: {
      group: 'KV cache',
      unit: 'tokens',
      formerly: 'maxAttentionWindow',
      defaultText: "the model's",
      help: 'Tokens that each token attends to (sliding window). Requests may then be longer than the cache.',
    },
  }),
  /** First tokens of a sequence that always stay in the attention window (StreamingLLM); default 0. */
  sinkTokenLength: ofServe(wholeNumber(0, MAX_INT32), {
    name: 'attentionSinkTokens',
    seedName: 'kvCacheConfig.sinkTokenLength',
    default: 0,
    flag: {
      group: 'KV cache',
      unit: 'tokens',
      formerly: 'sinkTokenLength',
      defaultText: '0',
      help: 'First tokens of a request that always stay in the attention window (StreamingLLM).',
    },
  }),
  /** Share of the memory left after loading that the KV cache may take; default 0.9. */
  freeGpuMemoryFraction: ofServe(SHARE, {
    name: 'memoryFraction',
    seedName: 'kvCacheConfig.freeGpuMemoryFraction',
    default: DEFAULT_KV_FRACTION,
    flag: {
      group: 'KV cache',
      unit: 'share',
      formerly: 'freeGpuMemoryFraction',
      defaultText: String(DEFAULT_KV_FRACTION),
      help: 'Share of the memory left after loading that the KV cache may take.',
    },
  }),
  /** Keeps the blocks of ended requests, so that prompts that begin alike share them; default false. */
  enableBlockReuse: ofServe(SWITCH, {
    name: 'prefixCaching',
    seedName: 'kvCacheConfig.enableBlockReuse',
    default: false,
    isInFlightOnly: true,
    flag: {
      group: 'KV cache',
      formerly: 'enableBlockReuse',
      aliases: ['enablePrefixCaching'],
      default: true,
      help: 'Reuse the KV cache of prompts with the same beginning.',
    },
  }),
  /** With enableBlockReuse: also uses a block whose first tokens alone match the prompt; default true. */
  enablePartialReuse: ofGptManager(SWITCH, {
    seedName: 'kvCacheConfig.enablePartialReuse',
    default: true,
    help: 'With block reuse: also use blocks of which only the first tokens are common.',
  }),
  /**
   * With enablePartialReuse: copies such a block; default true. When false, an unused block is taken over and a block
   * in use is not reused.
   */
  copyOnPartialReuse: ofGptManager(SWITCH, {
    seedName: 'kvCacheConfig.copyOnPartialReuse',
    default: true,
    help: 'With partial reuse: copy such blocks; false: only take over blocks that no request holds.',
  }),
  /**
   * With enableBlockReuse: bytes of a secondary pool. Cached blocks that have to make room are swapped out to it
   * instead of being forgotten, and swapped in when a prompt needs them again. The pool is taken in addition to what
   * freeGpuMemoryFraction gives, from the same memory, and lowers what that fraction counts. Default 0.
   */
  hostCacheSize: ofServe(BYTES, {
    name: 'kvCacheSwapBytes',
    seedName: 'kvCacheConfig.hostCacheSize',
    default: 0,
    isInFlightOnly: true,
    flag: {
      group: 'KV cache',
      unit: 'bytes',
      formerly: 'hostCacheSize',
      defaultText: '0',
      help: 'Memory besides the KV cache to which cached blocks are swapped out instead of being dropped.',
    },
  }),
  /**
   * With enableBlockReuse: a folder in which cached blocks are kept as files too, for later prompts and for the engine after a restart.
   * Several engines and processes may share one. Default: none.
   */
  diskCachePath: ofServe(NAME, {
    name: 'diskCache',
    seedName: null,
    default: 'none',
    isInFlightOnly: true,
    flag: {
      group: 'KV cache',
      metavar: 'FOLDER',
      defaultText: 'none',
      help: 'Folder for cached prompts as files, which are found after a restart.',
    },
  }),
  /** Most bytes of all files in diskCachePath; the longest unused ones are removed. Default 16 GiB. */
  diskCacheSize: ofServe(BYTES, {
    name: 'diskCacheBytes',
    seedName: null,
    default: DEFAULT_DISK_CACHE_BYTES,
    flag: {
      group: 'KV cache',
      unit: 'bytes',
      defaultText: String(DEFAULT_DISK_CACHE_BYTES),
      help: 'Most bytes of the files in --disk-cache; the longest unused ones are removed.',
    },
  }),
  /** Share of the KV cache's memory that states of sequences and their snapshots take, where the model has states; default 0.3. */
  stateFraction: ofServe(SHARE, {
    name: 'stateFraction',
    seedName: 'kvCacheConfig.stateFraction',
    default: DEFAULT_STATE_FRACTION,
    flag: {
      group: 'KV cache',
      unit: 'share',
      defaultText: String(DEFAULT_STATE_FRACTION),
      help: "Share of the KV cache's memory for states of sequences and their snapshots (models with a state).",
    },
  }),
  /** Tokens of a prompt between two snapshots of its states, in whole blocks, rounded up; default 1024. */
  stateInterval: ofServe(COUNT, {
    name: 'stateIntervalTokens',
    seedName: 'kvCacheConfig.stateInterval',
    default: DEFAULT_STATE_INTERVAL,
    flag: {
      group: 'KV cache',
      unit: 'tokens',
      defaultText: String(DEFAULT_STATE_INTERVAL),
      help: 'Tokens of a prompt between two snapshots of its states (models with a state).',
    },
  }),
  /** Lowest retention priority, 0 to 100, with which a block is swapped out; default 30. */
  secondaryOffloadMinPriority: ofServe(wholeNumber(0, 100), {
    name: 'kvCacheSwapMinPriority',
    seedName: 'kvCacheConfig.secondaryOffloadMinPriority',
    default: 30,
    flag: {
      group: 'KV cache',
      metavar: 'PRIORITY',
      formerly: 'secondaryOffloadMinPriority',
      defaultText: '30',
      help: 'Lowest retention priority of blocks that are swapped out.',
    },
  }),
  /**
   * Most events about cached blocks kept within one iteration for onKvCacheEvents; default 16 384 where that is given,
   * else 0.
   */
  eventBufferMaxSize: ofGptManager(wholeNumber(0, 1_000_000), {
    seedName: 'kvCacheConfig.eventBufferMaxSize',
    default: '16384 with onKvCacheEvents, else 0',
    help: 'Events about cached blocks that are kept within one iteration for onKvCacheEvents.',
  }),
};
