const M = 'model_name="$model_name"';
const percentiles = (name: string, more = '') =>
  [0.99, 0.95, 0.9, 0.5].map(
    (share) =>
      `histogram_quantile(${share}, sum by(le) (rate(${name}_bucket{${M}${more}}[$__rate_interval])))`,
  );
const average = (name: string) =>
  `rate(${name}_sum{${M}}[$__rate_interval]) / rate(${name}_count{${M}}[$__rate_interval])`;
const rate = (name: string) => `rate(${name}{${M}}[$__rate_interval])`;
const lengths = (name: string) => `sum by(le) (increase(${name}_bucket{${M}}[$__rate_interval]))`;
const ID = 'model_name=~"$id"';
const SERVICE = 'namespace="$NS",service="$SVC"';
const ofTarget = 'job=~"$job", model_name=~"$model_name", instance=~"$instance"';
const ofEngine = `${ofTarget}, engine=~"$engine"`;
const ofProcess = 'job=~"$job", instance=~"$instance"';
const DRAFTS = 'vllm:spec_decode_num_';

/**
 * Queries of the dashboards that vLLM publishes (its repository, examples/observability, and before that
 * examples/online_serving/dashboards with grafana and perses): the series, labels and functions of their panels.
 */
export const STOCK_QUERIES: Readonly<Record<string, readonly string[]>> = {
  'grafana.json': [
    ...percentiles('vllm:e2e_request_latency_seconds'),
    average('vllm:e2e_request_latency_seconds'),
    rate('vllm:prompt_tokens_total'),
    rate('vllm:generation_tokens_total'),
    ...percentiles('vllm:inter_token_latency_seconds'),
    average('vllm:inter_token_latency_seconds'),
    `vllm:num_requests_running{${M}}`,
    `vllm:num_requests_waiting{${M}}`,
    ...percentiles('vllm:time_to_first_token_seconds'),
    average('vllm:time_to_first_token_seconds'),
    `vllm:kv_cache_usage_perc{${M}}`,
    lengths('vllm:request_prompt_tokens'),
    lengths('vllm:request_generation_tokens'),
    `sum by(finished_reason) (increase(vllm:request_success_total{${M}}[$__rate_interval]))`,
    rate('vllm:request_queue_time_seconds_sum'),
    rate('vllm:request_prefill_time_seconds_sum'),
    rate('vllm:request_decode_time_seconds_sum'),
    rate('vllm:request_max_num_generation_tokens_sum'),
  ],
  'grafana.json before 0.11': [
    ...percentiles('vllm:time_per_output_token_seconds'),
    average('vllm:time_per_output_token_seconds'),
    `vllm:gpu_cache_usage_perc{${M}}`,
  ],
  'performance_statistics.json': [
    'rate(vllm:e2e_request_latency_seconds_sum[$__rate_interval]) / rate(vllm:e2e_request_latency_seconds_count[$__rate_interval])',
    'histogram_quantile(0.99, sum by(le) (rate(vllm:e2e_request_latency_seconds_bucket[$__range])))',
    'sum(increase(vllm:time_to_first_token_seconds_sum[$__range])) / sum(increase(vllm:time_to_first_token_seconds_count[$__range]))',
    'histogram_quantile(0.90, sum by(le) (rate(vllm:time_to_first_token_seconds_bucket[$__range])))',
    'histogram_quantile(0.50, sum by(le) (rate(vllm:inter_token_latency_seconds_bucket[$__range])))',
    'rate(vllm:inter_token_latency_seconds_sum[$__interval]) / rate(vllm:inter_token_latency_seconds_count[$__interval])',
    'sum(vllm:prompt_tokens_total) + sum(vllm:generation_tokens_total)',
    'rate(vllm:generation_tokens_total[$__interval])',
    'rate(vllm:prompt_tokens_total[$__interval])',
    'rate(vllm:iteration_tokens_total_count[$__interval])',
    'label_values(vllm:generation_tokens_total,model_name)',
  ],
  'query_statistics.json': [
    'label_values(vllm:request_success_total,model_name)',
    'sum by (model_name) (rate(vllm:request_success_total{model_name=~"$id"}[$__rate_interval]))',
    'histogram_quantile(0.99, sum by(le, model_name) (rate(vllm:e2e_request_latency_seconds_bucket{model_name=~"$id"}[$__rate_interval])))',
    'sum by (le, model_name) (rate(vllm:request_prompt_tokens_bucket{model_name=~"$id"}[$__rate_interval]))',
    'sum(rate(vllm:prompt_tokens_total{model_name=~"$id"}[$__rate_interval])) / sum(rate(vllm:request_success_total{model_name=~"$id"}[$__rate_interval]))',
    'sum by (model_name) (rate(vllm:generation_tokens_total{model_name=~"$id"}[$__rate_interval]))',
  ],
  'perses/performance_statistics.yaml': [
    ...[
      'e2e_request_latency_seconds',
      'time_to_first_token_seconds',
      'time_per_output_token_seconds',
    ].flatMap((name) => [
      `sum by (model_name) (rate(vllm:${name}_sum{${ID}}[$__interval])) / sum by (model_name) (rate(vllm:${name}_count{${ID}}[$__interval]))`,
      `(sum by (model_name) (increase(vllm:${name}_sum{${ID}}[$__range]))) / (sum by (model_name) (increase(vllm:${name}_count{${ID}}[$__range])))`,
      `histogram_quantile(0.99, sum by (le, model_name) (rate(vllm:${name}_bucket{${ID}}[$__interval])))`,
    ]),
    `sum by (model_name) (rate(vllm:generation_tokens_total{${ID}}[$__interval]))`,
    `sum by (model_name) (rate(vllm:prompt_tokens_total{${ID}}[$__interval]))`,
    `sum by (model_name) (rate(vllm:iteration_tokens_total_count{${ID}}[$__interval]))`,
  ],
  'perses/query_statistics.yaml': [
    ...['num_requests_running', 'num_requests_waiting', 'kv_cache_usage_perc'].flatMap((name) => [
      `sum(vllm:${name}{${SERVICE}}) or vector(0)`,
      `sum by (service) (vllm:${name}{${SERVICE}}) or vector(0)`,
      `(avg by (pod) (vllm:${name}{${SERVICE}}) * 100) or vector(0)`,
    ]),
    `count(up{${SERVICE}} == 1) or vector(0)`,
    `sum by (model_name) (rate(vllm:request_success_total{${SERVICE},${ID}}[$__interval])) or vector(0)`,
    `histogram_quantile(0.50, sum by (le, model_name) (rate(vllm:e2e_request_latency_seconds_bucket{${SERVICE},${ID}}[$__interval]))) or vector(0)`,
    `sum by (model_name) (rate(vllm:prompt_tokens_total{${SERVICE},${ID}}[$__interval])) or vector(0)`,
    `sum by (model_name) (rate(vllm:generation_tokens_total{${SERVICE},${ID}}[$__interval])) or vector(0)`,
  ],
  'vllm_overview.json': [
    `sum(rate(vllm:request_success_total{${ofTarget}}[$__rate_interval]))`,
    '(sum(rate(http_requests_total{job=~"$job", status="5xx"}[$__rate_interval])) or vector(0)) / (sum(rate(http_requests_total{job=~"$job"}[$__rate_interval])) > 0)',
    `count(vllm:num_requests_running{${ofTarget}})`,
    `sum(rate(vllm:time_to_first_token_seconds_bucket{${ofTarget}, le="$ttft_slo"}[$__rate_interval])) / (sum(rate(vllm:time_to_first_token_seconds_count{${ofTarget}}[$__rate_interval])) > 0)`,
    `sum(rate(vllm:request_time_per_output_token_seconds_bucket{${ofTarget}, le="$tpot_slo"}[$__rate_interval])) / (sum(rate(vllm:request_time_per_output_token_seconds_count{${ofTarget}}[$__rate_interval])) > 0)`,
    `sum by (model_name) (rate(vllm:request_success_total{${ofTarget}, finished_reason="error"}[$__range])) / (sum by (model_name) (rate(vllm:request_success_total{${ofTarget}}[$__range])) > 0)`,
    `max by (model_name) (max_over_time(vllm:kv_cache_usage_perc{${ofTarget}}[$__range]))`,
    `round(sum by (model_name) (increase(vllm:num_preemptions_total{${ofTarget}}[$__range])))`,
    'count(up{job=~"$job"} == 0) or vector(0)',
    `sum by (reason) (vllm:num_requests_waiting_by_reason{${ofTarget}})`,
    `sum by (source) (rate(vllm:prompt_tokens_by_source_total{${ofTarget}}[$__rate_interval]))`,
  ],
  // Its queries have `and on () count(vllm:num_requests_running{...})` behind them, which asks for no other series.
  'vllm_service_status.json': [
    `(2 - (max(vllm:engine_sleep_state{${ofTarget}, sleep_state="awake"}) == bool 0)) or vector(0)`,
    `(histogram_quantile(0.5, sum by (le) (rate(vllm:time_to_first_token_seconds_bucket{${ofTarget}}[5m]))))`,
    `(sum(rate(vllm:generation_tokens_total{${ofTarget}}[5m])) / (sum(avg_over_time(vllm:num_requests_running{${ofTarget}}[5m])) > 0))`,
    `(1 - (sum(rate(vllm:request_success_total{${ofTarget}, finished_reason="error"}[5m])) / (sum(rate(vllm:request_success_total{${ofTarget}}[5m])) > 0)))`,
    `(60 * sum(rate(vllm:request_success_total{${ofTarget}}[5m])))`,
  ],
  'vllm_kv_cache.json': [
    `sum(rate(vllm:prefix_cache_hits_total{${ofTarget}}[$__rate_interval])) / (sum(rate(vllm:prefix_cache_queries_total{${ofTarget}}[$__rate_interval])) > 0)`,
    `histogram_quantile(0.95, sum by (le) (rate(vllm:request_prefill_kv_computed_tokens_bucket{${ofTarget}}[$__rate_interval])))`,
    `sum(rate(vllm:prompt_tokens_cached_total{${ofEngine}}[$__rate_interval])) / (sum(rate(vllm:prompt_tokens_total{${ofEngine}}[$__rate_interval])) > 0)`,
    ...['capacity', 'deferred'].map(
      (reason) => `sum(vllm:num_requests_waiting_by_reason{${ofEngine}, reason="${reason}"})`,
    ),
    ...['local_compute', 'local_cache_hit', 'external_kv_transfer'].map(
      (source) =>
        `sum(rate(vllm:prompt_tokens_by_source_total{${ofEngine}, source="${source}"}[$__rate_interval]))`,
    ),
    `sum by (source) (rate(vllm:prompt_tokens_cached_by_source_total{${ofEngine}}[$__rate_interval]))`,
    `sum(rate(vllm:request_prompt_tokens_sum{${ofEngine}}[$__rate_interval])) / (sum(rate(vllm:request_prompt_tokens_count{${ofEngine}}[$__rate_interval])) > 0)`,
    `sum(rate(vllm:request_prefill_kv_computed_tokens_sum{${ofEngine}}[$__rate_interval]))`,
  ],
  'vllm_instances.json': [
    `count by (model_name, instance) (vllm:num_requests_running{${ofEngine}})`,
    `sum by (instance, engine) (vllm:num_requests_waiting{${ofEngine}})`,
    `max by (instance, engine) (vllm:kv_cache_usage_perc{${ofEngine}})`,
    `sum by (instance) (rate(vllm:request_success_total{${ofEngine}}[$__rate_interval]))`,
    `sum by (instance) (rate(vllm:request_queue_time_seconds_sum{${ofEngine}}[$__rate_interval])) / (sum by (instance) (rate(vllm:request_queue_time_seconds_count{${ofEngine}}[$__rate_interval])) > 0)`,
    `sum by (instance, engine) (rate(vllm:iteration_tokens_total_sum{${ofEngine}}[$__rate_interval])) / (sum by (instance, engine) (rate(vllm:iteration_tokens_total_count{${ofEngine}}[$__rate_interval])) > 0)`,
    `sum by (instance, engine, reason) (vllm:num_requests_waiting_by_reason{${ofEngine}})`,
    `(1 - max by (instance, engine) (vllm:engine_sleep_state{${ofEngine}, sleep_state="awake"})) * (1 + max by (instance, engine) (vllm:engine_sleep_state{${ofEngine}, sleep_state="discard_all"}))`,
    // The whole query joins the model's name to it.
    `max by (instance) (time() - process_start_time_seconds{${ofProcess}})`,
    `sum by (instance) (rate(process_cpu_seconds_total{${ofProcess}}[$__rate_interval]))`,
    `sum by (instance) (process_resident_memory_bytes{${ofProcess}})`,
    `sum by (instance) (process_open_fds{${ofProcess}}) / sum by (instance) (process_max_fds{${ofProcess}})`,
    `vllm:cache_config_info{${ofProcess}, engine=~"$engine"}`,
  ],
  // All but the acceptance by position in the draft (accepted_tokens_per_pos_total), which is not measured here.
  'vllm_speculative_decoding.json': [
    `sum(rate(${DRAFTS}accepted_tokens_total{${ofEngine}}[$__rate_interval])) / (sum(rate(${DRAFTS}draft_tokens_total{${ofEngine}}[$__rate_interval])) > 0)`,
    `1 + sum by (model_name) (rate(${DRAFTS}accepted_tokens_total{${ofEngine}}[$__rate_interval])) / (sum by (model_name) (rate(${DRAFTS}drafts_total{${ofEngine}}[$__rate_interval])) > 0)`,
    `sum(rate(${DRAFTS}accepted_tokens_total{${ofEngine}}[$__rate_interval])) / (sum(rate(vllm:generation_tokens_total{${ofEngine}}[$__rate_interval])) > 0)`,
  ],
};
