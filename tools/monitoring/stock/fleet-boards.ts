// What vLLM's boards of a fleet ask: Overview, Instances and Service Status.
import { positive, Selection } from './selection.js';

const FLEET = 'job=~"$job", model_name=~"$model_name", instance=~"$instance"';
const ofFleet = new Selection(FLEET);
const ofEngine = new Selection(`${FLEET}, engine=~"$engine"`);
const ofProcess = new Selection('job=~"$job", instance=~"$instance"');

const FIRST_TOKEN = 'vllm:time_to_first_token_seconds';
const BETWEEN_TOKENS = 'vllm:inter_token_latency_seconds';
const PER_TOKEN = 'vllm:request_time_per_output_token_seconds';
const LATENCY = 'vllm:e2e_request_latency_seconds';
const QUEUE = 'vllm:request_queue_time_seconds';
const RUNNING = 'vllm:num_requests_running';
const WAITING = 'vllm:num_requests_waiting';
const WAITING_BY_REASON = 'vllm:num_requests_waiting_by_reason';
const USAGE = 'vllm:kv_cache_usage_perc';
const FINISHED = 'vllm:request_success_total';
const PREEMPTIONS = 'vllm:num_preemptions_total';
const STEP_TOKENS = 'vllm:iteration_tokens_total';
const TOKENS = ['vllm:prompt_tokens_total', 'vllm:generation_tokens_total'];
const PREFIX_CACHE = ['vllm:prefix_cache_hits_total', 'vllm:prefix_cache_queries_total'] as const;

/** Panels that several boards have. */
export const shared = {
  queue: (of: Selection) => [
    of.now('sum', RUNNING),
    ...['capacity', 'deferred'].map((reason) =>
      of.now('sum', WAITING_BY_REASON, { more: `reason="${reason}"` }),
    ),
  ],
  hitRates: (of: Selection) => [
    of.ratio(...PREFIX_CACHE),
    of.ratio('vllm:external_prefix_cache_hits_total', 'vllm:external_prefix_cache_queries_total'),
    of.ratio('vllm:mm_cache_hits_total', 'vllm:mm_cache_queries_total'),
  ],
  sources: (of: Selection) =>
    ['local_compute', 'local_cache_hit', 'external_kv_transfer'].map((source) =>
      of.sumRate('vllm:prompt_tokens_by_source_total', { more: `source="${source}"` }),
    ),
};

/** The choosers above a board. */
export function choosers(hasEngine: boolean): string[] {
  const of = (matchers: string, label: string) => `label_values(${RUNNING}${matchers}, ${label})`;
  return [
    of('', 'job'),
    of('{job=~"$job"}', 'model_name'),
    of('{job=~"$job", model_name=~"$model_name"}', 'instance'),
    ...(hasEngine ? [of(`{${FLEET}}`, 'engine')] : []),
  ];
}

/** Share of a histogram's values up to a bound, which is one of its buckets. */
const within = (histogram: string, bound: string) =>
  positive(
    ofFleet.sumRate(`${histogram}_bucket`, { more: `le="${bound}"` }),
    ofFleet.sumRate(`${histogram}_count`),
  );
/** Shares of a histogram's buckets over the time shown. */
const distribution = (histogram: string) =>
  positive(
    `sum by (le) (increase(${ofFleet.series(`${histogram}_bucket`)}[$__range]))`,
    `sum(increase(${ofFleet.series(`${histogram}_count`)}[$__range]))`,
    'on () group_left ()',
  );
const ofModels = { by: 'model_name', window: '$__range' };
const failed = (by: string) =>
  positive(
    ofFleet.sumRate(FINISHED, { by, more: 'finished_reason="error"', window: '$__range' }),
    ofFleet.sumRate(FINISHED, { by, window: '$__range' }),
  );

export const OVERVIEW: readonly string[] = [
  ...choosers(false),
  ...[FINISHED, ...TOKENS, PREEMPTIONS].map((name) => ofFleet.sumRate(name)),
  positive(
    `(${ofProcess.sumRate('http_requests_total', { more: 'status="5xx"' })} or vector(0))`,
    ofProcess.sumRate('http_requests_total'),
  ),
  ...[FIRST_TOKEN, BETWEEN_TOKENS, LATENCY].map((name) => ofFleet.quantile(0.95, name)),
  'count(up{job=~"$job"} == 0) or vector(0)',
  ofFleet.now('count', RUNNING),
  ofFleet.now('sum', WAITING),
  ...['max', 'avg', 'min'].map((operator) => ofFleet.now(operator, USAGE)),
  within(FIRST_TOKEN, '$ttft_slo'),
  within(PER_TOKEN, '$tpot_slo'),
  `count by (model_name) (group by (model_name, instance) (last_over_time(${ofFleet.series(RUNNING)}[$__range])))`,
  ofFleet.sumRate(FINISHED, ofModels),
  ofFleet.sumRate('vllm:generation_tokens_total', ofModels),
  ...[FIRST_TOKEN, BETWEEN_TOKENS, LATENCY].map((name) => ofFleet.quantile(0.95, name, ofModels)),
  failed('model_name'),
  `max by (model_name) (max_over_time(${ofFleet.series(USAGE)}[$__range]))`,
  `round(sum by (model_name) (increase(${ofFleet.series(PREEMPTIONS)}[$__range])))`,
  ...[FIRST_TOKEN, BETWEEN_TOKENS, PER_TOKEN, LATENCY, QUEUE].flatMap((name) => ofFleet.spread(name)),
  ...['prefill', 'decode'].map((phase) => ofFleet.mean(`vllm:request_${phase}_time_seconds`)),
  ...[FIRST_TOKEN, BETWEEN_TOKENS, LATENCY].map((name) => ofFleet.sumRate(`${name}_bucket`, { by: 'le' })),
  ...TOKENS.map((name) => ofFleet.sumRate(name, { by: 'model_name' })),
  ofFleet.sumRate(FINISHED, { by: 'finished_reason' }),
  ...shared.queue(ofFleet),
  ...[0.5, 0.99].map((share) => ofFleet.quantile(share, STEP_TOKENS)),
  ofFleet.mean(STEP_TOKENS),
  ...shared.hitRates(ofFleet),
  ...shared.sources(ofFleet),
  ...['vllm:request_prompt_tokens', 'vllm:request_generation_tokens'].flatMap((name) => [
    ...ofFleet.spread(name),
    distribution(name),
  ]),
  positive(
    ofFleet.sumRate(FINISHED, { by: 'finished_reason' }),
    ofFleet.sumRate(FINISHED),
    'ignoring (finished_reason) group_left ()',
  ),
  ...['status', 'handler'].map((by) => ofProcess.sumRate('http_requests_total', { by })),
  ofProcess.mean('http_request_duration_seconds', 'handler'),
];

const ofInstances = { by: 'model_name, instance', window: '5m' };
const ENGINES = { by: 'instance, engine' };
const INSTANCES = { by: 'instance' };
const OPERATIONS = ['sleep_mode', 'rl_weight_update'].map(
  (kind) => `vllm:${kind}_operation_duration_seconds`,
);
/** The totals of rare operations, of either kind. */
const latest = (name: string, by = 'operation') =>
  `sum by (${by}) (last_over_time(${ofProcess.series(name)}[$__range]))`;

export const INSTANCE_BOARD: readonly string[] = [
  ...choosers(true),
  ofEngine.now('count', RUNNING, ofInstances),
  ...[RUNNING, WAITING].map((name) => ofEngine.now('sum', name, ofInstances)),
  ofEngine.now('max', USAGE, ofInstances),
  ...[FINISHED, 'vllm:generation_tokens_total', PREEMPTIONS].map((name) =>
    ofEngine.sumRate(name, ofInstances),
  ),
  ...[FIRST_TOKEN, BETWEEN_TOKENS].map((name) => ofEngine.quantile(0.95, name, ofInstances)),
  `max by (model_name, instance) ((time() - ${ofProcess.series('process_start_time_seconds')}) * on (job, instance) group_left (model_name) group by (job, instance, model_name) (${ofEngine.series(RUNNING)}))`,
  ...[RUNNING, WAITING].map((name) => ofEngine.now('sum', name, ENGINES)),
  ofEngine.now('max', USAGE, ENGINES),
  ofEngine.sumRate(FINISHED, INSTANCES),
  ...TOKENS.map((name) => ofEngine.sumRate(name, ENGINES)),
  ...[FIRST_TOKEN, BETWEEN_TOKENS, LATENCY].map((name) => ofEngine.quantile(0.95, name, INSTANCES)),
  ofEngine.mean(QUEUE, 'instance'),
  ofEngine.sumRate(`${STEP_TOKENS}_count`, ENGINES),
  ofEngine.mean(STEP_TOKENS, 'instance, engine'),
  ofEngine.sumRate(PREEMPTIONS, ENGINES),
  ofEngine.now('sum', WAITING_BY_REASON, { by: 'instance, engine, reason' }),
  ofEngine.ratio(...PREFIX_CACHE, ENGINES),
  ofProcess.sumRate('process_cpu_seconds_total', INSTANCES),
  ofProcess.now('sum', 'process_resident_memory_bytes', INSTANCES),
  `${ofProcess.now('sum', 'process_open_fds', INSTANCES)} / ${ofProcess.now('sum', 'process_max_fds', INSTANCES)}`,
  ofProcess.series('vllm:cache_config_info', 'engine=~"$engine"'),
  `topk by (job, instance) (1, ${ofProcess.series('vllm:lora_requests_info')})`,
  `(1 - ${ofEngine.now('max', 'vllm:engine_sleep_state', { ...ENGINES, more: 'sleep_state="awake"' })}) * (1 + ${ofEngine.now('max', 'vllm:engine_sleep_state', { ...ENGINES, more: 'sleep_state="discard_all"' })})`,
  OPERATIONS.map((name) => latest(`${name}_count`)).join(' or '),
  OPERATIONS.map((name) => positive(latest(`${name}_sum`), latest(`${name}_count`))).join(' or '),
  OPERATIONS.map((name) => `histogram_quantile(0.99, ${latest(`${name}_bucket`, 'le, operation')})`).join(
    ' or ',
  ),
  ofEngine.sumRate('vllm:estimated_flops_per_gpu_total', ENGINES),
  ['read', 'write']
    .map((way) => ofEngine.sumRate(`vllm:estimated_${way}_bytes_per_gpu_total`, ENGINES))
    .join(' + '),
];

const FIVE = { window: '5m' };
const STATUS = `(2 - (${ofFleet.now('max', 'vllm:engine_sleep_state', { more: 'sleep_state="awake"' })} == bool 0)) or vector(0)`;
const whereServed = (query: string) => [query, `(${query}) and on () ${ofFleet.now('count', RUNNING)}`];

export const SERVICE_STATUS: readonly string[] = [
  ...choosers(false),
  STATUS,
  ...whereServed(ofFleet.quantile(0.5, FIRST_TOKEN, FIVE)),
  ...whereServed(
    positive(
      ofFleet.sumRate('vllm:generation_tokens_total', FIVE),
      `sum(avg_over_time(${ofFleet.series(RUNNING)}[5m]))`,
    ),
  ),
  ...whereServed(
    `1 - (${positive(ofFleet.sumRate(FINISHED, { ...FIVE, more: 'finished_reason="error"' }), ofFleet.sumRate(FINISHED, FIVE))})`,
  ),
  ...whereServed(`60 * ${ofFleet.sumRate(FINISHED, FIVE)}`),
];
