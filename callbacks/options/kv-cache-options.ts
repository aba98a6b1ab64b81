import { BYTES, COUNT, MAX_COUNT, SHARE, SWITCH, wholeNumber } from '../../base/option-values.js';
import { ofGptManager, ofServe } from './option.js';

export const DEFAULT_KV_FRACTION = 0.9;

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
      help: 'tokens that the KV cache holds, over all requests',
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
      help: 'tokens that each token attends to; a request holds KV cache for no more, and may be longer than the cache',
    },
  }),
  /** First tokens of a sequence that always stay in the attention window (StreamingLLM); default 0. */
  sinkTokenLength: ofServe(wholeNumber(0, MAX_COUNT), {
    name: 'attentionSinkTokens',
    seedName: 'kvCacheConfig.sinkTokenLength',
    default: 0,
    flag: {
      group: 'KV cache',
      unit: 'tokens',
      formerly: 'sinkTokenLength',
      defaultText: '0',
      help: 'the first tokens of a request, which stay in the attention window and count towards it (StreamingLLM)',
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
      help: 'share of the memory left free after loading that the KV cache may take, above 0 and at most 1',
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
      help: 'prompts with the same beginning share the KV cache computed for it (--no-prefix-caching turns it off)',
    },
  }),
  /** With enableBlockReuse: also uses a block whose first tokens alone match the prompt; default true. */
  enablePartialReuse: ofGptManager(SWITCH, {
    seedName: 'kvCacheConfig.enablePartialReuse',
    default: true,
    help: 'with block reuse: also use blocks of which only the first tokens are common',
  }),
  /**
   * With enablePartialReuse: copies such a block; default true. When false, an unused block is taken over and a block
   * in use is not reused.
   */
  copyOnPartialReuse: ofGptManager(SWITCH, {
    seedName: 'kvCacheConfig.copyOnPartialReuse',
    default: true,
    help: 'with partial reuse: copy such blocks; false: only take over blocks that no request holds',
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
      help: 'memory besides the KV cache for swapping out blocks of prompts that would otherwise be dropped',
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
      help: 'lowest retention priority with which a block is swapped out',
    },
  }),
  /**
   * Most events about cached blocks kept within one iteration for onKvCacheEvents; default 16 384 where that is given,
   * else 0.
   */
  eventBufferMaxSize: ofGptManager(wholeNumber(0, 1_000_000), {
    seedName: 'kvCacheConfig.eventBufferMaxSize',
    default: '16384 with onKvCacheEvents, else 0',
    help: 'events about cached blocks that are kept within one iteration for onKvCacheEvents',
  }),
};
