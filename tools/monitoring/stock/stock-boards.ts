import { KV_CACHE, SPECULATIVE_DECODING } from './engine-boards.js';
import { INSTANCE_BOARD, OVERVIEW, SERVICE_STATUS } from './fleet-boards.js';
import { OLDER_BOARDS } from './older-boards.js';

/**
 * Every query of the boards that vLLM publishes for Grafana and Perses (its repository, examples/observability, and
 * before that examples/online_serving) and of those of its production stack: series, labels and functions as there.
 */
export const STOCK_BOARDS: Readonly<Record<string, readonly string[]>> = {
  'grafana/vllm_overview.json': OVERVIEW,
  'grafana/vllm_instances.json': INSTANCE_BOARD,
  'grafana/vllm_kv_cache.json': KV_CACHE,
  'grafana/vllm_speculative_decoding.json': SPECULATIVE_DECODING,
  'grafana/vllm_service_status.json': SERVICE_STATUS,
  ...OLDER_BOARDS,
};

/** Series of vLLM that these boards ask for and that a server of Skein never has, with the reason. */
const ABSENT: readonly (readonly [name: RegExp, why: string])[] = [
  [/^vllm:external_prefix_cache_/, "prefixes in another machine's cache: there is no KV connector of vLLM"],
  [/^vllm:mm_cache_/, 'images and sound: no model here takes them'],
  [/^vllm:num_requests_kv_fetch_by_stage$/, 'blocks from a KV connector of vLLM: there is none'],
  [/^vllm:nixl_/, 'transfers by NIXL: there are none'],
  [
    /^vllm:(simple_)?kv_offload_/,
    "vLLM's offloading connectors: swapped blocks are in skein:kv_blocks_swapped_...",
  ],
  [/^vllm:kv_block_/, 'lifetimes of blocks, which vLLM samples with --kv-cache-metrics: not measured'],
  [
    /^vllm:(sleep_mode|rl_weight_update)_operation_/,
    'putting an engine to sleep, or giving it new weights: it has no such call',
  ],
  [
    /^(vllm:healthy_pods_total|vllm:current_qps|router_.*)$/,
    "series of the production stack's router, not of a server",
  ],
  [
    /^lmcache:/,
    "LMCache's own series: blocks that are swapped out are in skein:kv_blocks and skein:kv_blocks_swapped_...",
  ],
  [/^vllm:estimated_/, "vLLM's estimate with --enable-mfu-metrics: not measured"],
];

/** Why a series of vLLM is not there; null where it should be. */
export function whyAbsent(name: string): string | null {
  return ABSENT.find(([pattern]) => pattern.test(name))?.[1] ?? null;
}
