// What vLLM's older boards ask, which its releases still bring along, its boards for Perses, and those of its production stack.
import { Selection } from './selection.js';

const ofModel = new Selection('model_name="$model_name"');
const ofDeployment = new Selection('model_name=~"$Deployment_id"');
const ofId = new Selection('model_name=~"$MODEL"');
const SERVICE = 'namespace="$NS",service="$SVC"';
const ofService = new Selection(`${SERVICE},model_name=~"$MODEL"`);

const REQUEST = 'vllm:e2e_request_latency_seconds';
const FIRST_TOKEN = 'vllm:time_to_first_token_seconds';
const PER_TOKEN = 'vllm:request_time_per_output_token_seconds';
const BETWEEN_TOKENS = 'vllm:inter_token_latency_seconds';
const TOKENS = ['vllm:prompt_tokens_total', 'vllm:generation_tokens_total'];
const GAUGES = ['vllm:num_requests_running', 'vllm:num_requests_waiting', 'vllm:kv_cache_usage_perc'];
const FINISHED = 'vllm:request_success_total';

/** Quantiles and the mean of a histogram for one model. */
const latency = (name: string) => [
  ...[0.99, 0.95, 0.9, 0.5].map((share) => ofModel.quantile(share, name)),
  `${ofModel.rate(`${name}_sum`)} / ${ofModel.rate(`${name}_count`)}`,
];
const increases = (name: string, by: string) =>
  `sum by(${by}) (increase(${ofModel.series(name)}[$__rate_interval]))`;

const GRAFANA: readonly string[] = [
  'label_values(model_name)',
  ...[REQUEST, BETWEEN_TOKENS, FIRST_TOKEN, PER_TOKEN].flatMap(latency),
  ...TOKENS.map((name) => ofModel.rate(name)),
  ...GAUGES.map((name) => ofModel.series(name)),
  ...['prompt', 'generation'].map((what) => increases(`vllm:request_${what}_tokens_bucket`, 'le')),
  increases(FINISHED, 'finished_reason'),
  ...['queue_time_seconds', 'prefill_time_seconds', 'decode_time_seconds', 'max_num_generation_tokens'].map(
    (name) => ofModel.rate(`vllm:request_${name}_sum`),
  ),
];

const plain = (name: string, window: string) => `rate(${name}[${window}])`;
const PERFORMANCE: readonly string[] = [
  'label_values(vllm:generation_tokens_total,model_name)',
  ...[REQUEST, FIRST_TOKEN, BETWEEN_TOKENS].flatMap((name) => [
    `${plain(`${name}_sum`, '$__interval')} / ${plain(`${name}_count`, '$__interval')}`,
    `(sum(increase(${name}_sum[$__range])) / sum(increase(${name}_count[$__range])))`,
    ...[0.99, 0.9, 0.5].map(
      (share) => `histogram_quantile(${share}, sum by(le) (${plain(`${name}_bucket`, '$__range')}))`,
    ),
  ]),
  ...[...TOKENS, 'vllm:iteration_tokens_total_count'].map((name) => plain(name, '$__interval')),
  'sum(vllm:prompt_tokens_total) + sum(vllm:generation_tokens_total)',
];

const BY_MODEL = { by: 'model_name' };
const QUERIES: readonly string[] = [
  'label_values(vllm:request_success_total,model_name)',
  ...[FINISHED, ...TOKENS].flatMap((name) => [
    ofDeployment.sumRate(name, BY_MODEL),
    ofDeployment.sumRate(name),
  ]),
  ...[REQUEST, 'vllm:request_prompt_tokens'].flatMap((name) =>
    [0.5, 0.9, 0.99].map((share) => ofDeployment.quantile(share, name, BY_MODEL)),
  ),
  ofDeployment.sumRate('vllm:request_prompt_tokens_bucket', { by: 'le, model_name' }),
  `${ofDeployment.sumRate('vllm:prompt_tokens_total')} / ${ofDeployment.sumRate(FINISHED)}`,
];

const INTERVAL = { ...BY_MODEL, window: '$__interval' };
const PERSES_PERFORMANCE: readonly string[] = [
  ...[REQUEST, FIRST_TOKEN, 'vllm:time_per_output_token_seconds'].flatMap((name) => [
    `${ofId.sumRate(`${name}_sum`, INTERVAL)} / ${ofId.sumRate(`${name}_count`, INTERVAL)}`,
    `(sum by (model_name) (increase(${ofId.series(`${name}_sum`)}[$__range]))) / (sum by (model_name) (increase(${ofId.series(`${name}_count`)}[$__range])))`,
    ...[0.5, 0.9, 0.99].map((share) => ofId.quantile(share, name, INTERVAL)),
  ]),
  ...[...TOKENS, 'vllm:iteration_tokens_total_count'].map((name) => ofId.sumRate(name, INTERVAL)),
  ...GAUGES.slice(0, 2).map((name) => `sum(${name})`),
];
const PERSES_QUERIES: readonly string[] = [
  ...GAUGES.flatMap((name) => [
    `sum(${name}{${SERVICE}}) or vector(0)`,
    ...['service', 'pod'].map((by) => `sum by (${by}) (${name}{${SERVICE}}) or vector(0)`),
  ]),
  `count(up{${SERVICE}} == 1) or vector(0)`,
  ...[FINISHED, ...TOKENS].map((name) => `${ofService.sumRate(name, INTERVAL)} or vector(0)`),
  ...[0.5, 0.9, 0.99].map((share) => `${ofService.quantile(share, REQUEST, INTERVAL)} or vector(0)`),
];

/** vllm-dashboard.json and vllm-model-metrics-dashboard.json. */
const PRODUCTION_STACK: readonly string[] = [
  ...GRAFANA,
  ...GAUGES,
  ...[REQUEST, PER_TOKEN].map((name) => `avg(${name}_sum) / avg(${name}_count)`),
  ...[REQUEST, FIRST_TOKEN].map((name) => `sum by(le) (${name}_bucket)`),
  ofModel.rate(`${PER_TOKEN}_sum`),
  `${FIRST_TOKEN}_sum / ${FIRST_TOKEN}_count`,
  'vllm:gpu_prefix_cache_hits_total{endpoint="service-port"} / vllm:gpu_prefix_cache_queries_total',
  'sum(max by (server) (vllm:healthy_pods_total))',
  'vllm:current_qps',
  ...['cpu', 'memory', 'disk'].map((what) => `router_${what}_usage_percent`),
];

export const OLDER_BOARDS: Readonly<Record<string, readonly string[]>> = {
  'prometheus_grafana/grafana.json': GRAFANA,
  'the same before 0.11': [
    ...latency('vllm:time_per_output_token_seconds'),
    ...['gpu_cache_usage_perc', 'cpu_cache_usage_perc', 'num_requests_swapped'].map((name) =>
      ofModel.series(`vllm:${name}`),
    ),
  ],
  'grafana/performance_statistics.json': PERFORMANCE,
  'grafana/query_statistics.json': QUERIES,
  'perses/performance_statistics.yaml': PERSES_PERFORMANCE,
  'perses/query_statistics.yaml': PERSES_QUERIES,
  'production-stack': PRODUCTION_STACK,
};
