import { cpus, freemem, totalmem } from 'node:os';
import type { Metric, Registry } from 'prom-client';
import type {
  FailureReason,
  InferModel,
  StatisticDuration,
  VersionStatistics,
} from '../../../serving/infer-model.js';
import { liveCounter, liveGauge } from './live-family.js';

const LABELS = ['model', 'version'] as const;
const REASONS: readonly FailureReason[] = ['REJECTED', 'CANCELED', 'BACKEND', 'OTHER'];
const NS_PER_US = 1000;

/** Triton's counters of a version, with what each counts. */
const COUNTS = {
  nv_inference_request_success: [
    'Requests that were answered',
    ({ inference_stats }) => inference_stats.success.count,
  ],
  nv_inference_count: ['Rows of all answered requests', ({ inference_count }) => inference_count],
  nv_inference_exec_count: ['Batches that were run', ({ execution_count }) => execution_count],
  nv_inference_request_duration_us: [
    'Microseconds of all answered requests, from their arrival to their last answer',
    ({ inference_stats }) => microseconds(inference_stats.success),
  ],
  nv_inference_queue_duration_us: [
    'Microseconds that requests waited for their batch',
    ({ inference_stats }) => microseconds(inference_stats.queue),
  ],
  nv_inference_compute_input_duration_us: [
    'Microseconds in which inputs were made ready',
    ({ inference_stats }) => microseconds(inference_stats.compute_input),
  ],
  nv_inference_compute_infer_duration_us: [
    'Microseconds in which models ran',
    ({ inference_stats }) => microseconds(inference_stats.compute_infer),
  ],
  nv_inference_compute_output_duration_us: [
    'Microseconds in which outputs were taken out',
    ({ inference_stats }) => microseconds(inference_stats.compute_output),
  ],
} satisfies Record<string, readonly [help: string, value: (statistics: VersionStatistics) => number]>;

function microseconds({ ns }: StatisticDuration): number {
  return Math.round(ns / NS_PER_US);
}

const labelsOf = ({ config, version }: InferModel) => ({ model: config.name, version });

/**
 * Metrics under Triton's names, so that its dashboards work: of every version that is loaded, and of the machine. They are read from the
 * same numbers as GET /v2/models/stats. @param models those that are loaded now
 */
export function tritonFamilies(registry: Registry, models: () => readonly InferModel[]): void {
  const read = readTogether(models);
  for (const [name, [help, value]] of Object.entries(COUNTS))
    liveCounter(registry, {
      name,
      help,
      labelNames: LABELS,
      read: () => read().map(({ labels, statistics }) => [labels, value(statistics)]),
    });
  liveCounter(registry, {
    name: 'nv_inference_request_failure',
    help: 'Requests that were not answered, by the reason',
    labelNames: [...LABELS, 'reason'],
    read: () =>
      models().flatMap((model) => {
        const failures = model.failures();
        return REASONS.map((reason) => [{ ...labelsOf(model), reason }, failures[reason]]);
      }),
  });
  liveGauge(registry, {
    name: 'nv_inference_pending_request_count',
    help: 'Requests that wait for an instance',
    labelNames: LABELS,
    read: () => models().map((model) => [labelsOf(model), model.activity().waiting]),
  });
  registry.registerMetric(firstResponses(models) as unknown as Metric);
  machineFamilies(registry);
}

/** The statistics of all models, read once for the counters of a scrape, which are collected in one turn of the event loop. */
function readTogether(models: () => readonly InferModel[]) {
  let rows: { labels: ReturnType<typeof labelsOf>; statistics: VersionStatistics }[] | null = null;
  return () => {
    if (rows === null) {
      rows = models().map((model) => ({ labels: labelsOf(model), statistics: model.statistics() }));
      queueMicrotask(() => {
        rows = null;
      });
    }
    return rows;
  };
}

const FIRST_RESPONSE = 'nv_inference_first_response_histogram_ms';

/** A histogram of counts that are kept elsewhere, which the library's own cannot be given. */
function firstResponses(models: () => readonly InferModel[]) {
  return {
    name: FIRST_RESPONSE,
    get: async () => ({
      name: FIRST_RESPONSE,
      help: 'From arrival to the first response, in milliseconds, of models that send several',
      type: 'histogram',
      values: models().flatMap((model) => histogramOf(model)),
      aggregator: 'sum',
    }),
    reset: () => {},
  };
}

function histogramOf(model: InferModel) {
  const found = model.firstResponses?.();
  if (found === undefined) return [];
  const labels = labelsOf(model);
  let count = 0;
  const buckets = [...found.bounds.map(String), '+Inf'].map((le, i) => {
    count += found.counts[i]!;
    return { metricName: `${FIRST_RESPONSE}_bucket`, labels: { ...labels, le }, value: count };
  });
  return [
    ...buckets,
    { metricName: `${FIRST_RESPONSE}_sum`, labels, value: found.sumMs },
    { metricName: `${FIRST_RESPONSE}_count`, labels, value: count },
  ];
}

function machineFamilies(registry: Registry): void {
  let before = processorTimes();
  const used = () => {
    const now = processorTimes();
    const all = now.all - before.all;
    const share = all === 0 ? 0 : 1 - (now.idle - before.idle) / all;
    before = now;
    return share;
  };
  const gauge = (name: string, help: string, value: () => number) =>
    liveGauge(registry, { name, help, read: () => [[{}, value()]] });
  gauge('nv_cpu_utilization', 'Share of the processors of the machine in use since the last look', used);
  gauge('nv_cpu_memory_total_bytes', 'Memory of the machine', totalmem);
  gauge('nv_cpu_memory_used_bytes', 'Memory of the machine in use', () => totalmem() - freemem());
}

function processorTimes(): { idle: number; all: number } {
  let [idle, all] = [0, 0];
  for (const { times } of cpus()) {
    idle += times.idle;
    all += Object.values(times).reduce((sum, one) => sum + one, 0);
  }
  return { idle, all };
}
