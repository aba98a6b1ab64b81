/** A panel: its title, its unit in Grafana's words, and queries with their legends. `$model` is the chosen model. */
export interface Panel {
  title: string;
  description: string;
  unit: string;
  queries: readonly (readonly [legend: string, expr: string])[];
  stacked?: boolean;
}

const MODEL = 'model_name=~"$model"';
const rate = (name: string, more = '') =>
  `sum by (model_name) (rate(${name}{${MODEL}${more}}[$__rate_interval]))`;
const quantiles = (name: string) =>
  (['0.5', '0.95', '0.99'] as const).map(
    (share) =>
      [
        `{{model_name}} p${Number(share) * 100}`,
        `histogram_quantile(${share}, sum by (le, model_name) (rate(${name}_bucket{${MODEL}}[$__rate_interval])))`,
      ] as const,
  );
const mean = (name: string, legend: string) =>
  [
    `{{model_name}} ${legend}`,
    `sum by (model_name) (rate(${name}_sum{${MODEL}}[$__rate_interval])) / sum by (model_name) (rate(${name}_count{${MODEL}}[$__rate_interval]))`,
  ] as const;
const now = (name: string) => `${name}{${MODEL}}`;

/** The dashboard by rows. */
const ROWS: Readonly<Record<string, readonly Panel[]>> = {
  Traffic: [
    {
      title: 'Tokens per second',
      description: 'Generated, and computed of prompts: what the cache had is not in it.',
      unit: 'short',
      queries: [
        ['{{model_name}} generated', rate('vllm:generation_tokens_total')],
        ['{{model_name}} prompt', rate('skein:context_tokens_total')],
      ],
    },
    {
      title: 'Requests',
      description: 'In the batch, waiting for a place in it, and how many may wait.',
      unit: 'short',
      queries: [
        ['{{model_name}} running', now('vllm:num_requests_running')],
        ['{{model_name}} waiting', now('vllm:num_requests_waiting')],
        ['{{model_name}} may wait', now('skein:queue_limit')],
      ],
    },
    {
      title: 'Ends per second',
      description: 'Requests that ended, by reason.',
      unit: 'reqps',
      queries: [
        [
          '{{model_name}} {{finished_reason}}',
          `sum by (model_name, finished_reason) (rate(vllm:request_success_total{${MODEL}}[$__rate_interval]))`,
        ],
      ],
      stacked: true,
    },
    {
      title: 'HTTP responses per second',
      description: 'By route and status, and what was refused by the code of its error.',
      unit: 'reqps',
      queries: [
        [
          '{{handler}} {{status}}',
          'sum by (handler, status) (rate(skein:http_responses_total[$__rate_interval]))',
        ],
        ['refused: {{code}}', 'sum by (code) (rate(skein:requests_refused_total[$__rate_interval]))'],
      ],
    },
  ],
  Latency: [
    {
      title: 'Time to the first token',
      description: 'From the arrival, waiting included.',
      unit: 's',
      queries: quantiles('vllm:time_to_first_token_seconds'),
    },
    {
      title: 'Between two tokens',
      description: 'Of one request.',
      unit: 's',
      queries: quantiles('vllm:inter_token_latency_seconds'),
    },
    {
      title: 'Whole requests',
      description: 'From the arrival to the last token.',
      unit: 's',
      queries: quantiles('vllm:e2e_request_latency_seconds'),
    },
    {
      title: 'Where the time goes',
      description: 'Mean seconds of a request in the queue, in its prompt and in its generation.',
      unit: 's',
      queries: [
        mean('vllm:request_queue_time_seconds', 'queue'),
        mean('vllm:request_prefill_time_seconds', 'prompt'),
        mean('vllm:request_decode_time_seconds', 'generation'),
      ],
    },
  ],
  Engine: [
    {
      title: 'Iterations',
      description:
        'What an iteration of the loop takes, of it inside the executor, and of that the wait for other models.',
      unit: 's',
      queries: [
        ...quantiles('skein:iteration_duration_seconds'),
        [
          '{{model_name}} mean in the executor',
          `${rate('skein:executor_seconds_total')} / ${rate('skein:iterations_total')}`,
        ],
        [
          '{{model_name}} mean wait for other models',
          `${rate('skein:executor_wait_seconds_total')} / ${rate('skein:iterations_total')}`,
        ],
      ],
    },
    {
      title: 'Requests of an iteration',
      description: 'Mean size of the batch, and how many of it ran their prompt.',
      unit: 'short',
      queries: [
        mean('skein:iteration_requests', 'all'),
        mean('skein:iteration_context_requests', 'in their prompt'),
      ],
    },
    {
      title: 'Speculation',
      description: 'Tokens of drafts per second, and those of them that were right.',
      unit: 'short',
      queries: [
        ['{{model_name}} drafted', rate('vllm:spec_decode_num_draft_tokens_total')],
        ['{{model_name}} accepted', rate('vllm:spec_decode_num_accepted_tokens_total')],
      ],
    },
    {
      title: 'Engine',
      description: '1 where it runs; starts after a death; requests that follow a grammar.',
      unit: 'short',
      queries: [
        ['{{model_name}} ready', now('skein:engine_ready')],
        ['{{model_name}} restarts', now('skein:engine_restarts_total')],
        ['{{model_name}} guided per second', rate('skein:guided_requests_total')],
      ],
    },
  ],
  'KV cache': [
    {
      title: 'Blocks',
      description: 'By state. Free ones may hold what a prompt to come can reuse.',
      unit: 'short',
      queries: [['{{model_name}} {{state}}', now('skein:kv_blocks')]],
      stacked: true,
    },
    {
      title: 'Reuse',
      description: 'Share of prompt tokens, and of full blocks of prompts, that were in the cache.',
      unit: 'percentunit',
      queries: [
        [
          '{{model_name}} tokens',
          `${rate('vllm:prefix_cache_hits_total')} / ${rate('vllm:prefix_cache_queries_total')}`,
        ],
        [
          '{{model_name}} blocks',
          `${rate('skein:kv_blocks_reused_total')} / (${rate('skein:kv_blocks_reused_total')} + ${rate('skein:kv_blocks_missed_total')})`,
        ],
      ],
    },
    {
      title: 'Pauses per second',
      description: 'Requests whose blocks were taken for others; they go on later.',
      unit: 'short',
      queries: [['{{model_name}}', rate('vllm:num_preemptions_total')]],
    },
    {
      title: 'Secondary pool',
      description: 'Blocks moved out and back per second.',
      unit: 'short',
      queries: [
        ['{{model_name}} out', rate('skein:kv_blocks_swapped_out_total')],
        ['{{model_name}} in', rate('skein:kv_blocks_swapped_in_total')],
      ],
    },
  ],
  Process: [
    {
      title: 'Processor',
      description: 'Cores in use, all threads.',
      unit: 'short',
      queries: [['cores', 'rate(process_cpu_seconds_total[$__rate_interval])']],
    },
    {
      title: 'Memory',
      description: 'Resident, with the mapped weights; and the heap of JavaScript.',
      unit: 'bytes',
      queries: [
        ['resident', 'process_resident_memory_bytes'],
        ['heap', 'nodejs_heap_size_used_bytes'],
      ],
    },
    {
      title: 'Event loop',
      description: 'How late the thread of the HTTP side is.',
      unit: 's',
      queries: [
        ['mean', 'nodejs_eventloop_lag_mean_seconds'],
        ['p99', 'nodejs_eventloop_lag_p99_seconds'],
      ],
    },
    {
      title: 'HTTP exchanges',
      description: 'To their last byte, streams too.',
      unit: 's',
      queries: [
        [
          '{{handler}} p95',
          'histogram_quantile(0.95, sum by (le, handler) (rate(http_request_duration_seconds_bucket[$__rate_interval])))',
        ],
      ],
    },
  ],
};

const COLUMNS = 4;
const WIDTH = 24 / COLUMNS;
const HEIGHT = 8;

/** The dashboard as Grafana imports it. */
export function grafanaDashboard(rows = ROWS): object {
  const panels: object[] = [];
  let y = 0;
  for (const [title, row] of Object.entries(rows)) {
    panels.push({
      id: panels.length + 1,
      type: 'row',
      title,
      collapsed: false,
      panels: [],
      gridPos: { x: 0, y, w: 24, h: 1 },
    });
    y++;
    for (const [index, panel] of row.entries()) {
      const gridPos = { x: (index % COLUMNS) * WIDTH, y, w: WIDTH, h: HEIGHT };
      panels.push({ id: panels.length + 1, ...panelOf(panel), gridPos });
    }
    y += HEIGHT;
  }
  return {
    title: 'Skein',
    uid: 'skein',
    description:
      'A server of Skein: traffic, latency, the engines of its models, their caches, and the process.',
    schemaVersion: 39,
    editable: true,
    graphTooltip: 1,
    refresh: '5s',
    time: { from: 'now-15m', to: 'now' },
    templating: { list: VARIABLES },
    panels,
  };
}

// biome-ignore lint/suspicious/noTemplateCurlyInString: Grafana's own placeholder.
const SOURCE = { type: 'prometheus', uid: '${DS_PROMETHEUS}' };
const VARIABLES = [
  { name: 'DS_PROMETHEUS', label: 'data source', type: 'datasource', query: 'prometheus', refresh: 1 },
  {
    name: 'model',
    type: 'query',
    datasource: SOURCE,
    query: 'label_values(vllm:num_requests_running, model_name)',
    refresh: 2,
    includeAll: true,
    multi: true,
    allValue: '.*',
    current: { text: 'All', value: '$__all' },
  },
];

function panelOf({ title, description, unit, queries, stacked }: Panel): object {
  return {
    type: 'timeseries',
    title,
    description,
    datasource: SOURCE,
    fieldConfig: {
      defaults: {
        unit,
        min: 0,
        custom: {
          lineWidth: 1,
          showPoints: 'never',
          ...(stacked ? { fillOpacity: 20, stacking: { mode: 'normal', group: 'A' } } : {}),
        },
      },
      overrides: [],
    },
    options: {
      legend: { displayMode: 'list', placement: 'bottom' },
      tooltip: { mode: 'multi', sort: 'desc' },
    },
    targets: queries.map(([legendFormat, expr], index) => ({
      refId: String.fromCharCode(65 + index),
      datasource: SOURCE,
      expr,
      legendFormat,
      range: true,
    })),
  };
}
