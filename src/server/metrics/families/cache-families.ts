import type { Registry } from 'prom-client';
import type { CacheCounts, ResponseCache } from '../../../serving/cache/response-cache.js';
import type { InferModel, InferStatistics } from '../../../serving/infer-model.js';
import { liveCounter, liveGauge } from './live-family.js';

const NS_PER_US = 1000;

/** Counters of each model that has a response cache. */
const OF_MODELS = {
  nv_cache_num_hits_per_model: [
    'Requests that were answered from the cache',
    ({ cache_hit }) => cache_hit.count,
  ],
  nv_cache_num_misses_per_model: [
    'Requests whose answer was not in the cache, and is kept since',
    ({ cache_miss }) => cache_miss.count,
  ],
  nv_cache_hit_duration_per_model: [
    'Microseconds in which answers were found in the cache',
    ({ cache_hit }) => Math.round(cache_hit.ns / NS_PER_US),
  ],
  nv_cache_miss_duration_per_model: [
    'Microseconds in which answers were looked for in vain, and put into the cache',
    ({ cache_miss }) => Math.round(cache_miss.ns / NS_PER_US),
  ],
} satisfies Record<string, readonly [help: string, value: (statistics: InferStatistics) => number]>;

/** Counters of the cache itself. */
const COUNTS = {
  nv_cache_num_hits: ['Answers found in the cache', ({ hits }) => hits],
  nv_cache_num_misses: ['Answers looked for in vain', ({ misses }) => misses],
  nv_cache_num_lookups: ['Answers looked for', ({ hits, misses }) => hits + misses],
  nv_cache_num_evictions: ['Answers that made room for newer ones', ({ evictions }) => evictions],
  nv_cache_lookup_duration: [
    'Microseconds of all lookups',
    ({ lookupNs }) => Math.round(lookupNs / NS_PER_US),
  ],
  nv_cache_insertion_duration: [
    'Microseconds in which answers were put into the cache',
    ({ insertNs }) => Math.round(insertNs / NS_PER_US),
  ],
} satisfies Record<string, readonly [help: string, value: (counts: CacheCounts) => number]>;

const GAUGES = {
  nv_cache_num_entries: ['Answers that are kept', ({ entries }) => entries],
  nv_cache_util: [
    'Share of the memory for answers in use, 0 to 1',
    ({ bytes, maxBytes }) => bytes / maxBytes,
  ],
} satisfies Record<string, readonly [help: string, value: (counts: CacheCounts) => number]>;

/**
 * Metrics of the response cache under Triton's names, also those of its local cache.
 * @param models those that are loaded now
 */
export function cacheFamilies(
  registry: Registry,
  models: () => readonly InferModel[],
  cache: Pick<ResponseCache, 'counts'>,
): void {
  for (const [name, [help, value]] of Object.entries(OF_MODELS))
    liveCounter(registry, {
      name,
      help,
      labelNames: ['model', 'version'],
      read: () =>
        models()
          .filter(({ isCached }) => isCached)
          .map((model) => [
            { model: model.config.name, version: model.version },
            value(model.statistics().inference_stats),
          ]),
    });
  for (const [name, [help, value]] of Object.entries(COUNTS))
    liveCounter(registry, { name, help, read: () => [[{}, value(cache.counts())]] });
  for (const [name, [help, value]] of Object.entries(GAUGES))
    liveGauge(registry, { name, help, read: () => [[{}, value(cache.counts())]] });
}
