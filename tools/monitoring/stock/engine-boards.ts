// What vLLM's boards of its engines ask: KV Cache and Speculative Decoding.
import { choosers, shared } from './fleet-boards.js';
import { positive, Selection } from './selection.js';

const ofEngine = new Selection(
  'job=~"$job", model_name=~"$model_name", instance=~"$instance", engine=~"$engine"',
);
const ENGINES = { by: 'instance, engine' };
const USAGE = 'vllm:kv_cache_usage_perc';
const PREEMPTIONS = 'vllm:num_preemptions_total';
const rates = (...names: string[]) => names.map((name) => ofEngine.sumRate(name));

const nixl = (name: string) => `vllm:nixl_${name}`;
const offload = (name: string) => `vllm:kv_offload_${name}`;
const simple = (name: string) => `vllm:simple_kv_offload_${name}`;

export const KV_CACHE: readonly string[] = [
  ...choosers(true),
  ...['max', 'avg'].map((operator) => ofEngine.now(operator, USAGE)),
  ofEngine.ratio('vllm:prompt_tokens_cached_total', 'vllm:prompt_tokens_total'),
  ofEngine.sumRate(PREEMPTIONS),
  ofEngine.now('max', USAGE, ENGINES),
  ...shared.queue(ofEngine),
  ofEngine.sumRate(PREEMPTIONS, ENGINES),
  ...shared.sources(ofEngine),
  ofEngine.ratio('vllm:prefix_cache_hits_total', 'vllm:prefix_cache_queries_total', ENGINES),
  ofEngine.sumRate('vllm:prompt_tokens_cached_by_source_total', { by: 'source' }),
  ...['prompt_tokens', 'prefill_kv_computed_tokens'].map((name) => ofEngine.mean(`vllm:request_${name}`)),
  ...shared.hitRates(ofEngine),
  ...['lifetime', 'idle_before_evict', 'reuse_gap'].flatMap((name) =>
    ofEngine.spread(`vllm:kv_block_${name}_seconds`),
  ),
  ofEngine.now('sum', 'vllm:num_requests_kv_fetch_by_stage', { by: 'stage' }),
  ...['xfer_time_seconds', 'bytes_transferred', 'post_time_seconds', 'num_descriptors'].flatMap((name) =>
    ofEngine.spread(nixl(name)),
  ),
  ...rates(nixl('bytes_transferred_sum'), nixl('xfer_time_seconds_count')),
  ofEngine.ratio(nixl('bytes_transferred_sum'), nixl('xfer_time_seconds_sum')),
  ...rates(
    nixl('num_failed_transfers_total'),
    nixl('num_failed_notifications_total'),
    nixl('num_kv_expired_reqs_total'),
    nixl('num_notifications_after_expiry_total'),
  ),
  ...['load', 'store'].flatMap((way) => [
    ofEngine.sumRate(offload(`${way}_bytes_total`)),
    ofEngine.ratio(offload(`${way}_bytes_total`), offload(`${way}_time_total`)),
    ofEngine.mean(offload(`${way}_size`)),
  ]),
  ...['sync', 'async'].map((way) => ofEngine.quantile(0.99, offload(`lookup_${way}_delay_seconds`))),
  ...['', 'write_', 'read_'].map((way) => ofEngine.now('max', offload(`cpu_cache_${way}usage_perc`))),
  ...rates(offload('allocation_failure_total'), offload('stores_skipped_total')),
  ofEngine.sumRate(simple('save_outcomes_total'), { by: 'outcome' }),
  ofEngine.sumRate(simple('load_blocks_total')),
  ...['used_blocks', 'pending_store_blocks'].map((name) => ofEngine.now('sum', simple(name))),
];

const draft = (name: string) => `vllm:spec_decode_num_${name}_total`;
const ACCEPTED = draft('accepted_tokens');
const PROPOSED = draft('draft_tokens');
const DRAFTS = draft('drafts');

export const SPECULATIVE_DECODING: readonly string[] = [
  ...choosers(true),
  ofEngine.ratio(ACCEPTED, PROPOSED),
  `1 + ${ofEngine.ratio(ACCEPTED, DRAFTS)}`,
  ...rates(ACCEPTED, PROPOSED, DRAFTS),
  ofEngine.ratio(ACCEPTED, 'vllm:generation_tokens_total'),
  ofEngine.ratio(ACCEPTED, PROPOSED, { by: 'model_name' }),
  `1 + ${ofEngine.ratio(ACCEPTED, DRAFTS, { by: 'model_name' })}`,
  positive(
    ofEngine.sumRate(draft('accepted_tokens_per_pos'), { by: 'position' }),
    ofEngine.sumRate(DRAFTS),
    'on () group_left ()',
  ),
  ofEngine.ratio(ACCEPTED, PROPOSED, ENGINES),
  `${ofEngine.sumRate(PROPOSED)} - ${ofEngine.sumRate(ACCEPTED)}`,
  ...ofEngine.spread('vllm:inter_token_latency_seconds'),
];
