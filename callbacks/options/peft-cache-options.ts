import { MAX_INT32 } from '../../base/int32.js';
import { BYTES, COUNT, SHARE, wholeNumber } from '../../base/option-values.js';
import { ofGptManager, ofServe } from './option.js';

export const DEFAULT_OPTIMAL_ADAPTER_SIZE = 8;
export const DEFAULT_MAX_ADAPTER_SIZE = 64;
export const DEFAULT_DEVICE_CACHE_PERCENT = 0.05;
export const DEFAULT_HOST_CACHE_SIZE = 2 ** 30;

/** Share that the command line and Skein.load have in the place of DEFAULT_DEVICE_CACHE_PERCENT: they know no other use of that memory. */
export const PLAIN_DEVICE_CACHE_PERCENT = 0.5;

/** The same for optimalAdapterSize: small pages, of which a small adapter takes one and a large one hardly more than it needs. */
export const PLAIN_OPTIMAL_ADAPTER_SIZE = 1;

/** Greatest rank that adapters may be allowed to have. */
const MAX_RANK = 1024;
/**
 * Most adapters on the device. A batch names slots, and an executor may keep a table of them, so their number is bounded even
 * where there are more pages.
 */
export const MAX_ADAPTER_SLOTS = 1024;
const GROUP = 'LoRA adapters';
const WORKERS = wholeNumber(1, 1024);

/** The options of PeftCacheConfig. With any of them, or with {}, requests may bring LoRA adapters. */
export const PEFT_CACHE_OPTIONS = {
  /**
   * Rows that the host cache of adapters holds, each one rank of one module in one layer; 0, the default: hostCacheSize says
   * it.
   */
  numHostModuleLayer: ofGptManager(wholeNumber(0, MAX_INT32), {
    seedName: 'peftCacheManagerConfig.numHostModuleLayer',
    default: 0,
    help: 'LoRA: rows (one rank of one module in one layer) that the host cache of adapters holds; 0: by hostCacheSize.',
  }),
  /** The same for the device's cache, from which steps read; 0, the default: deviceCachePercent says it. */
  numDeviceModuleLayer: ofGptManager(wholeNumber(0, MAX_INT32), {
    seedName: 'peftCacheManagerConfig.numDeviceModuleLayer',
    default: 0,
    help: 'LoRA: the same for the cache that steps read; 0: by deviceCachePercent.',
  }),
  /** Rank for which an adapter on all modules takes exactly one page; default 8. */
  optimalAdapterSize: ofGptManager(wholeNumber(1, MAX_RANK), {
    seedName: 'peftCacheManagerConfig.optimalAdapterSize',
    default: DEFAULT_OPTIMAL_ADAPTER_SIZE,
    help: 'LoRA: rank for which an adapter on all modules takes exactly one page.',
  }),
  /** Greatest rank of an adapter; a page has room for one module-layer of it; default 64. */
  maxAdapterSize: ofServe(wholeNumber(1, MAX_RANK), {
    name: 'maxLoraRank',
    seedName: 'peftCacheManagerConfig.maxAdapterSize',
    default: DEFAULT_MAX_ADAPTER_SIZE,
    flag: {
      group: GROUP,
      metavar: 'N',
      default: DEFAULT_MAX_ADAPTER_SIZE,
      help: 'Highest LoRA rank.',
    },
  }),
  /** Most adapters in one step; others wait. Default: as many as the cache for steps has pages, at most 1024. */
  maxAdapters: ofServe(wholeNumber(1, MAX_ADAPTER_SLOTS), {
    name: 'maxLoras',
    default: 'as many as have room, at most 1024',
    flag: {
      group: GROUP,
      metavar: 'N',
      help: 'Most LoRA adapters in one iteration; requests with others wait.',
      defaultText: 'as many as have room',
    },
  }),
  /** Accepted; the loop itself puts adapters into the host cache. Default 1. */
  numPutWorkers: ofGptManager(WORKERS, {
    seedName: 'peftCacheManagerConfig.numPutWorkers',
    default: 1,
    help: 'LoRA: accepted without effect; the loop puts adapters into the host cache itself.',
  }),
  /** Accepted; the loop itself brings adapters to the device's cache. Default 1. */
  numEnsureWorkers: ofGptManager(WORKERS, {
    seedName: 'peftCacheManagerConfig.numEnsureWorkers',
    default: 1,
    help: "LoRA: accepted without effect; the loop brings adapters to the executor's cache itself.",
  }),
  /** Accepted; nothing is copied to another device by streams. Default 1. */
  numCopyStreams: ofGptManager(WORKERS, {
    seedName: 'peftCacheManagerConfig.numCopyStreams',
    default: 1,
    help: 'LoRA: accepted without effect; there are no streams.',
  }),
  /** Accepted; pages are counted, and memory is taken adapter by adapter. Default 24. */
  maxPagesPerBlockHost: ofGptManager(COUNT, {
    seedName: 'peftCacheManagerConfig.maxPagesPerBlockHost',
    default: 24,
    help: 'LoRA: accepted without effect; memory is taken adapter by adapter.',
  }),
  /** Accepted; pages are counted, and memory is taken adapter by adapter. Default 24. */
  maxPagesPerBlockDevice: ofGptManager(COUNT, {
    seedName: 'peftCacheManagerConfig.maxPagesPerBlockDevice',
    default: 24,
    help: 'LoRA: accepted without effect; memory is taken adapter by adapter.',
  }),
  /**
   * Share of the memory left after the model and the KV cache that the device's cache may take; default 0.05.
   */
  deviceCachePercent: ofServe(SHARE, {
    name: 'loraMemoryFraction',
    seedName: 'peftCacheManagerConfig.deviceCachePercent',
    default: DEFAULT_DEVICE_CACHE_PERCENT,
    flag: {
      group: GROUP,
      unit: 'share',
      default: PLAIN_DEVICE_CACHE_PERCENT,
      help: 'Share of the memory that model and KV cache leave, for LoRA adapters in use.',
    },
  }),
  /** Bytes of the host cache; default 1 GiB. */
  hostCacheSize: ofServe(BYTES, {
    name: 'loraCacheBytes',
    seedName: 'peftCacheManagerConfig.hostCacheSize',
    default: DEFAULT_HOST_CACHE_SIZE,
    flag: {
      group: GROUP,
      unit: 'bytes',
      default: DEFAULT_HOST_CACHE_SIZE,
      help: 'Memory for all loaded LoRA adapters, in float32.',
    },
  }),
};
