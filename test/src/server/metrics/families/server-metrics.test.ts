import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import type { IterationStats } from '../../../../../callbacks/gpt-manager-options.js';
import { ServerMetrics } from '../../../../../src/server/metrics/families/server-metrics.js';
import type { IterationCounts } from '../../../../../src/server/metrics/model-metrics.js';
import { MemoryLedger } from '../../../../../src/server/web/memory/held-memory.js';
import type { AdapterSet } from '../../../../../src/serving/adapters/model-adapters.js';
import type { EngineCounts } from '../../../../../src/serving/running-model.js';
import type { ServedGenerator } from '../../../../../src/serving/served-model.js';
import { grafanaDashboard } from '../../../../../tools/monitoring/dashboard.js';
import {
  dashboardQueries,
  queriedSeries,
  queryFaults,
} from '../../../../../tools/monitoring/dashboard-queries.js';
import { type Family, parseExposition } from '../../../../../tools/monitoring/exposition.js';
import { STOCK_BOARDS, whyAbsent } from '../../../../../tools/monitoring/stock/stock-boards.js';
import { FakeEngine } from '../../../support/fake-engine.js';
import { directoryOf, ToldStatistics } from '../../../support/served-models.js';
import { toyModel } from '../../../support/toy-server.js';

const gauges = (running: number) =>
  new ToldStatistics<EngineCounts, IterationStats>(() => {
    return { running, waiting: 2, maxBlocks: 10, usedBlocks: 4 };
  });
const model = (fields: Partial<ServedGenerator>) => toyModel(new FakeEngine(() => []), fields);
const SERVED = [
  model({
    id: 'chat',
    maxSeqLen: 2048,
    statistics: gauges(1),
    maxQueueSize: 256,
    kvCache: { tokensPerBlock: 32, kvDtype: 'bf16' },
  }),
  model({
    id: 'org/"code"\\',
    maxSeqLen: 8192,
    statistics: gauges(3),
    maxQueueSize: 8,
    kvCache: { secondaryBlocks: 6 },
  }),
];
const MODELS = directoryOf(...SERVED);
const STATS: IterationCounts = {
  iterationMs: 20,
  executorMs: 15,
  waitedMs: 5,
  expertReadBytes: 4096,
  scheduledRequests: 3,
  contextRequests: 1,
  contextTokens: 100,
  generatedTokens: 2,
  totalPauses: 1,
  queriedTokens: 100,
  reusedTokens: 64,
  drafts: 1,
  draftedTokens: 4,
  acceptedDraftTokens: 3,
  acceptedByPosition: [1, 1, 1, 0],
  reusedBlocks: 2,
  missedBlocks: 1,
  swappedOutBlocks: 5,
  swappedInBlocks: 2,
  secondaryUsedBlocks: 3,
  states: { slots: 8, usedSlots: 3, snapshots: 16, keptSnapshots: 5, hits: 4, lost: 2 },
  disk: {
    ...{ files: 9, bytes: 900, maxBytes: 1000, hits: 6, misses: 5, readBytes: 600 },
    ...{ writtenBlocks: 7, damaged: 1, errors: 3 },
  },
};

async function scrape(metrics: ServerMetrics): Promise<Map<string, Family>> {
  return parseExposition(await metrics.text());
}

/** The value of a series; undefined where there is none. */
function value(families: Map<string, Family>, name: string, labels: Record<string, string>) {
  const family = families.get(name) ?? families.get(name.replace(/_(bucket|sum|count)$/, ''));
  return family?.samples.find(
    (sample) =>
      sample.name === name &&
      Object.entries(labels).every(([label, wanted]) => sample.labels[label] === wanted),
  )?.value;
}

describe('the metrics of several models', () => {
  it('are one family each, with a series for every model from the start, in valid text', async () => {
    const families = await scrape(new ServerMetrics(MODELS, { process: true }));
    const ofModels = [...families.values()].filter(({ samples }) =>
      samples.some(({ labels }) => 'model_name' in labels),
    );
    expect(ofModels.length).toBeGreaterThan(40);
    for (const { name, samples } of ofModels) {
      const models = new Set(samples.map(({ labels }) => labels.model_name));
      // The configuration of a model's cache is reported only for models that have one.
      const expected = name === 'vllm:cache_config_info' ? ['chat'] : SERVED.map(({ id }) => id);
      expect([...models], name).toEqual(expected);
      for (const { labels } of samples) expect(labels.engine, name).toBe('0');
    }
    for (const name of ['process_cpu_seconds_total', 'nodejs_eventloop_lag_p99_seconds']) {
      expect(families.has(name), name).toBe(true);
    }
  });

  it('are those that the format names by their type: what has a total only grows', async () => {
    for (const { name, type } of (await scrape(new ServerMetrics(MODELS))).values()) {
      if (type === 'histogram') expect(name).toMatch(/^(vllm|skein|http)[:_]/);
      // vLLM calls this histogram so.
      else if (name.endsWith('_total')) expect(type, name).toBe('counter');
      else expect(type, name).toBe('gauge');
    }
  });

  it('have the files of a folder for blocks, and 0 where there is none', async () => {
    const metrics = new ServerMetrics(MODELS);
    metrics.model('chat').iteration(STATS);
    const families = await scrape(metrics);
    const of = (name: string, model_name: string) => value(families, `skein:kv_disk_${name}`, { model_name });
    expect(
      [
        ...['files', 'bytes', 'max_bytes', 'blocks_read_total', 'blocks_missed_total', 'read_bytes_total'],
        ...['blocks_written_total', 'damaged_files_total', 'errors_total'],
      ].map((name) => [of(name, 'chat'), of(name, 'org/"code"\\')]),
    ).toEqual([9, 900, 1000, 6, 5, 600, 7, 1, 3].map((count) => [count, 0]));
  });

  it('have the slots and snapshots of a model that keeps states, and 0 for others', async () => {
    const metrics = new ServerMetrics(MODELS);
    metrics.model('chat').iteration(STATS);
    const families = await scrape(metrics);
    const of = (name: string, model_name: string) => value(families, `skein:${name}`, { model_name });
    expect(
      [
        'state_slots',
        'state_slots_used',
        'state_snapshots',
        'state_snapshots_kept',
        'state_hits_total',
        'state_losses_total',
      ].map((name) => [of(name, 'chat'), of(name, 'org/"code"\\')]),
    ).toEqual([
      [8, 0],
      [3, 0],
      [16, 0],
      [5, 0],
      [4, 0],
      [2, 0],
    ]);
  });

  it('count for the model that they are of', async () => {
    const metrics = new ServerMetrics(MODELS);
    metrics.model('chat').iteration(STATS);
    metrics.model('chat').iteration({ ...STATS, totalPauses: 4, reusedBlocks: 2, swappedInBlocks: 3 });
    const request = metrics.observe({
      model: 'chat',
      promptTokens: 7,
      maxTokens: 9,
      isGuided: true,
      choices: 2,
    });
    request.onCachedTokens(5);
    request.onTokens(1);
    request.onTokens(3);
    request.onEnd('length');
    const families = await scrape(metrics);
    const chat = (name: string, more = {}) => value(families, name, { model_name: 'chat', ...more });
    expect(chat('vllm:iteration_tokens_total_sum')).toBe(204);
    expect(chat('vllm:num_preemptions_total')).toBe(4);
    expect(chat('vllm:prefix_cache_hits_total')).toBe(128);
    expect(chat('vllm:spec_decode_num_accepted_tokens_total')).toBe(6);
    const acceptedAt = (position: string) =>
      chat('vllm:spec_decode_num_accepted_tokens_per_pos_total', { position });
    expect(['0', '2', '3', '4'].map(acceptedAt)).toEqual([2, 2, 0, undefined]);
    expect(chat('vllm:inter_token_latency_seconds_count')).toBe(3);
    expect(chat('vllm:request_success_total', { finished_reason: 'length' })).toBe(1);
    expect(chat('vllm:request_success_total', { finished_reason: 'stop' })).toBe(0);
    expect(chat('vllm:request_params_n_sum')).toBe(2);
    expect(chat('vllm:cache_config_info', { block_size: '32', num_gpu_blocks: '10' })).toBe(1);
    expect(chat('skein:iteration_duration_seconds_bucket', { le: '0.025' })).toBe(2);
    expect(chat('skein:executor_seconds_total')).toBeCloseTo(0.03);
    expect(chat('skein:executor_wait_seconds_total')).toBeCloseTo(0.01);
    expect(chat('skein:expert_read_bytes_total')).toBe(8192);
    expect(chat('skein:kv_blocks_reused_total')).toBe(2);
    expect(chat('skein:kv_blocks_swapped_in_total')).toBe(3);
    expect(chat('skein:guided_requests_total')).toBe(1);
    expect(chat('skein:kv_blocks', { state: 'used' })).toBe(4);
    expect(chat('skein:kv_blocks', { state: 'free' })).toBe(6);
    expect(chat('skein:queue_limit')).toBe(256);
    expect(chat('vllm:prompt_tokens_by_source_total', { source: 'local_compute' })).toBe(2);
    expect(chat('vllm:prompt_tokens_by_source_total', { source: 'local_cache_hit' })).toBe(5);
    expect(chat('vllm:prompt_tokens_cached_by_source_total', { source: 'device' })).toBe(5);
    expect(chat('vllm:request_prefill_kv_computed_tokens_sum')).toBe(2);
    expect(chat('vllm:num_requests_waiting_by_reason', { reason: 'capacity' })).toBe(2);
    expect(chat('vllm:num_requests_waiting_by_reason', { reason: 'deferred' })).toBe(0);
    const code = (name: string) => value(families, name, { model_name: SERVED[1]!.id });
    expect(code('vllm:num_requests_running')).toBe(3);
    expect(code('vllm:iteration_tokens_total_count')).toBe(0);
    expect(code('vllm:prompt_tokens_total')).toBe(0);
  });

  it('tell how many ranks a model has, and how many of them are missing', async () => {
    const [chat] = SERVED;
    chat!.state.ranks = { size: 4, address: '/run/ranks' };
    const metrics = new ServerMetrics(MODELS);
    const ranks = async () => {
      const families = await scrape(metrics);
      return ['skein:ranks', 'skein:ranks_missing'].map((name) =>
        SERVED.map(({ id }) => value(families, name, { model_name: id })),
      );
    };
    expect(await ranks()).toEqual([
      [4, undefined],
      [0, undefined],
    ]);
    chat!.state.noteMissing({ ranks: [1, 3], address: '/run/ranks', refused: null });
    expect((await ranks())[1]).toEqual([2, undefined]);
    chat!.state.noteMissing({ ranks: [], address: '/run/ranks', refused: null });
    chat!.state.ranks = null;
  });

  it('go on counting where an engine dies, whose own totals begin anew', async () => {
    const metrics = new ServerMetrics(MODELS);
    const chat = metrics.model('chat');
    chat.iteration(STATS);
    chat.engineDown();
    const awake = (families: Map<string, Family>) =>
      value(families, 'vllm:engine_sleep_state', { model_name: 'chat', sleep_state: 'awake' });
    const down = await scrape(metrics);
    expect(value(down, 'skein:engine_ready', { model_name: 'chat' })).toBe(0);
    // vLLM's board of services shows a model without this series as down.
    expect(awake(down)).toBeUndefined();
    chat.engineRestarted(3);
    chat.iteration(STATS);
    const families = await scrape(metrics);
    expect(value(families, 'skein:engine_ready', { model_name: 'chat' })).toBe(1);
    expect(awake(families)).toBe(1);
    expect(value(families, 'skein:engine_restarts_total', { model_name: 'chat' })).toBe(1);
    expect(value(families, 'skein:requests_resumed_total', { model_name: 'chat' })).toBe(3);
    expect(value(families, 'vllm:num_preemptions_total', { model_name: 'chat' })).toBe(2);
  });

  it('tell what is paused and swapped out, by the names of older releases of vLLM too', async () => {
    const statistics = Object.assign(gauges(1), { paused: () => 2 });
    const kvCache = { secondaryBlocks: 6 };
    const metrics = new ServerMetrics(directoryOf(model({ id: 'swaps', statistics, kvCache })));
    metrics.model('swaps').iteration(STATS);
    const families = await scrape(metrics);
    expect(value(families, 'vllm:num_requests_swapped', { model_name: 'swaps' })).toBe(2);
    expect(value(families, 'vllm:cpu_cache_usage_perc', { model_name: 'swaps' })).toBe(0.5);
    const others = await scrape(new ServerMetrics(MODELS));
    expect(value(others, 'vllm:num_requests_swapped', { model_name: 'chat' })).toBe(0);
    expect(value(others, 'vllm:cpu_cache_usage_perc', { model_name: 'chat' })).toBe(0);
  });

  it('have buckets of tokens up to the longest sequence of any model', async () => {
    const families = await scrape(new ServerMetrics(MODELS));
    expect(value(families, 'vllm:request_prompt_tokens_bucket', { model_name: 'chat', le: '5000.0' })).toBe(
      0,
    );
    expect(value(families, 'vllm:request_prompt_tokens_bucket', { le: '10000.0' })).toBeUndefined();
  });
});

describe('dashboards', () => {
  /** A scrape of a server that has what metrics are kept of: ranks, adapters, drafts, requests over HTTP. */
  async function served(): Promise<Map<string, Family>> {
    const adapters = {
      room: { maxAdapters: 2 },
      list: () => [],
      has: () => false,
      inFlight: () => ({ running: [], waiting: [] }),
    } as unknown as AdapterSet;
    const [chat, code] = SERVED as [ServedGenerator, ServedGenerator];
    const models = directoryOf({ ...chat, adapters }, code);
    const metrics = new ServerMetrics(models, { process: true });
    chat.state.ranks = { size: 2, address: '/run/ranks' };
    metrics.watchMemory(new MemoryLedger({ limit: 1000 }));
    metrics.model('chat').iteration(STATS);
    metrics.httpRequest({ handler: '/v1/completions', method: 'POST', status: 500, durationMs: 3 });
    metrics.refused('queue_full');
    return scrape(metrics);
  }

  it('are read query by query: names, the labels chosen and grouped by, and what has no rate', async () => {
    expect(queriedSeries('sum by(le) (rate(a_bucket{m="$m",x!~"y"}[5m])) / on (m) b > 0.5')).toEqual([
      { name: 'a_bucket', labels: ['m', 'x'], groups: ['le', 'm'], isRate: true },
      { name: 'b', labels: [], groups: ['le', 'm'], isRate: false },
    ]);
    expect(queriedSeries('label_values(b{m="$m", x=~"y"}, z)')).toEqual([
      { name: 'b', labels: ['m', 'x', 'z'], groups: [], isRate: false },
    ]);
    expect(queriedSeries('label_values(z)')).toEqual([]);
    const families = await served();
    expect(queryFaults('rate(vllm:num_requests_running[5m])', families)).toHaveLength(1);
    expect(queryFaults('vllm:num_requests_running{gpu="0"}', families)).toHaveLength(1);
    expect(queryFaults('vllm:num_requests_asleep', families)).toHaveLength(1);
    expect(queryFaults('vllm:time_to_first_token_seconds', families)).toHaveLength(1);
    expect(queryFaults('vllm:num_requests_running{job="x"}', families)).toEqual([]);
    expect(queryFaults('sum by (gpu) (vllm:num_requests_running)', families)).toHaveLength(1);
    expect(queryFaults('label_values(vllm:num_requests_running, gpu)', families)).toHaveLength(1);
    expect(queryFaults('vllm:num_requests_running / on () group_left () (up > 0)', families)).toEqual([]);
  });

  it.each(Object.entries(STOCK_BOARDS))('of vLLM find what they read: %s', async (_, queries) => {
    const families = await served();
    const mayLack = (name: string) => whyAbsent(name) !== null;
    expect(queries.length).toBeGreaterThan(5);
    for (const query of queries) expect(queryFaults(query, families, mayLack), query).toEqual([]);
  });

  it('of vLLM lack only what no server has', async () => {
    for (const name of (await served()).keys()) expect(whyAbsent(name), name).toBeNull();
  });

  it('choose buckets by the text of their bounds, which is that of a number with a fraction', async () => {
    const families = await served();
    const bounds = families.get('vllm:time_to_first_token_seconds')!.samples.map(({ labels }) => labels.le);
    // Those that the board Overview offers for the time to the first token.
    for (const bound of ['0.1', '0.25', '0.5', '0.75', '1.0', '2.5', '5.0', '10.0', '+Inf']) {
      expect(bounds).toContain(bound);
    }
  });

  it('and alerts read what is there', async () => {
    const path = new URL('../../../../../tools/monitoring/alerts.yml', import.meta.url);
    const { groups } = parse(readFileSync(path, 'utf8')) as { groups: { rules: { expr: string }[] }[] };
    const families = await served();
    const rules = groups.flatMap((group) => group.rules);
    expect(rules.length).toBeGreaterThan(5);
    for (const { expr } of rules) expect(queryFaults(expr, families), expr).toEqual([]);
  });

  it('of this repository find what they read, and the file is what its source says', async () => {
    const path = new URL('../../../../../tools/monitoring/grafana-dashboard.json', import.meta.url);
    const written = JSON.parse(readFileSync(path, 'utf8')) as unknown;
    expect(written).toEqual(grafanaDashboard());
    const families = await served();
    const queries = dashboardQueries(written);
    expect(queries.length).toBeGreaterThan(30);
    for (const query of queries) expect(queryFaults(query, families), query).toEqual([]);
  });
});
