import { messageOf } from '../../base/error-text.js';
import { InputError } from '../errors.js';
import { type BenchReport, benchReport, REPORT_SCHEMA, type RunReport } from './schema.js';

/** Two-sided 95 % quantiles of Student's t for 1 to 30 degrees of freedom. */
const T95 = [
  12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.16, 2.145, 2.131,
  2.12, 2.11, 2.101, 2.093, 2.086, 2.08, 2.074, 2.069, 2.064, 2.06, 2.056, 2.052, 2.048, 2.045, 2.042,
];

interface Metric {
  name: string;
  unit: string;
  isBetterWhenLess: boolean;
  of: (run: RunReport) => number | null;
}

const METRICS: readonly Metric[] = [
  { name: 'requests/s', unit: '', isBetterWhenLess: false, of: (run) => run.throughput.requests },
  { name: 'output tokens/s', unit: '', isBetterWhenLess: false, of: (run) => run.throughput.outputTokens },
  { name: 'goodput', unit: '', isBetterWhenLess: false, of: (run) => run.goodput?.requestsPerSecond ?? null },
  ...(['ttft', 'tpot', 'itl', 'e2e'] as const).flatMap((latency) =>
    (['p50', 'p99'] as const).map(
      (share): Metric => ({
        name: `${latency.toUpperCase()} ${share}`,
        unit: 'ms',
        isBetterWhenLess: true,
        of: (run) => run.latencies[latency][share],
      }),
    ),
  ),
  {
    name: 'failed requests',
    unit: '',
    isBetterWhenLess: true,
    of: ({ requests }) => requests.total - requests.outcomes.completed,
  },
];

/** Mean of repeated runs. */
export interface Mean {
  mean: number;
  runs: number;
  /** Half of its 95 % interval; null for one run. */
  half: number | null;
}

export interface Comparison {
  /** Load of the compared runs. */
  label: string;
  metric: string;
  unit: string;
  a: Mean;
  b: Mean;
  /** Change from a to b, in percent of a; null where a is 0. */
  change: number | null;
  /** 95 % interval of the change (Welch's); null where either has fewer than two runs. */
  interval: [number, number] | null;
  /** 'better' or 'worse' where the interval is on one side of 0, 'same' where it holds 0, 'unknown' without one. */
  verdict: 'better' | 'worse' | 'same' | 'unknown';
}

/** Reads a report from its file's text. @throws InputError naming the file and the fault. */
export function readReport(text: string, file: string): BenchReport {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new InputError(`${file} is not JSON: ${messageOf(error)}.`);
  }
  const schema = (value as { schema?: unknown } | null)?.schema;
  if (schema !== REPORT_SCHEMA) {
    throw new InputError(
      `${file} has the schema ${JSON.stringify(schema) ?? 'of nothing'}; expected "${REPORT_SCHEMA}".`,
    );
  }
  const parsed = benchReport.safeParse(value);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    throw new InputError(`${file} is no report: ${issue!.path.join('.')}: ${issue!.message}.`);
  }
  return parsed.data;
}

/** Changes from a to b, load by load. @throws InputError where they have no load in common. */
export function compareReports(a: BenchReport, b: BenchReport): Comparison[] {
  const comparisons = commonLoads(a, b);
  if (comparisons.length > 0) return comparisons;
  const labels = ({ runs }: BenchReport) => [...byLabel(runs).keys()].join(', ');
  throw new InputError(`The reports have no load in common: ${labels(a)} and ${labels(b)}.`);
}

/** Changes from a to b, load by load; empty where they have no load in common. */
export function commonLoads(a: BenchReport, b: BenchReport): Comparison[] {
  const [runsOfA, runsOfB] = [byLabel(a.runs), byLabel(b.runs)];
  const labels = [...runsOfA.keys()].filter((label) => runsOfB.has(label));
  // Two reports of one load each are compared too, whatever their labels.
  const pairs: [string, RunReport[], RunReport[]][] =
    labels.length > 0
      ? labels.map((label) => [label, runsOfA.get(label)!, runsOfB.get(label)!])
      : runsOfA.size === 1 && runsOfB.size === 1
        ? [[`${[...runsOfA.keys()][0]} and ${[...runsOfB.keys()][0]}`, a.runs, b.runs]]
        : [];
  return pairs.flatMap(([label, left, right]) =>
    METRICS.flatMap((metric) => {
      const [x, y] = [valuesOf(left, metric), valuesOf(right, metric)];
      return x.length === 0 || y.length === 0 ? [] : [compare(label, metric, x, y)];
    }),
  );
}

function byLabel(runs: readonly RunReport[]): Map<string, RunReport[]> {
  const map = new Map<string, RunReport[]>();
  for (const run of runs) {
    const label = run.label.replace(/ #\d+$/, '');
    map.set(label, [...(map.get(label) ?? []), run]);
  }
  return map;
}

function valuesOf(runs: readonly RunReport[], { of }: Metric): number[] {
  return runs.map(of).filter((value) => value !== null);
}

function compare(label: string, metric: Metric, x: readonly number[], y: readonly number[]): Comparison {
  const [a, b] = [meanOf(x), meanOf(y)];
  const difference = b.mean - a.mean;
  const half = welchHalf(x, y);
  const percent = (value: number) => (100 * value) / a.mean;
  const change = a.mean === 0 ? null : percent(difference);
  const interval: [number, number] | null =
    half === null || a.mean === 0 ? null : [percent(difference - half), percent(difference + half)];
  const isLess = difference < 0;
  const isClear = interval !== null && interval[0] * interval[1] > 0;
  const clear = isLess === metric.isBetterWhenLess ? 'better' : 'worse';
  const verdict = interval === null ? 'unknown' : isClear ? clear : 'same';
  return { label, metric: metric.name, unit: metric.unit, a, b, change, interval, verdict };
}

function meanOf(values: readonly number[]): Mean {
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  const runs = values.length;
  const half = runs < 2 ? null : tQuantile(runs - 1) * Math.sqrt(varianceOf(values, mean) / runs);
  return { mean, runs, half };
}

/** Half of the 95 % interval of the difference of two means, by Welch's test. */
export function welchHalf(x: readonly number[], y: readonly number[]): number | null {
  if (x.length < 2 || y.length < 2) return null;
  const share = (values: readonly number[]) =>
    varianceOf(values, values.reduce((sum, value) => sum + value, 0) / values.length) / values.length;
  const [u, v] = [share(x), share(y)];
  if (u + v === 0) return 0;
  const freedom = (u + v) ** 2 / (u ** 2 / (x.length - 1) + v ** 2 / (y.length - 1));
  return tQuantile(freedom) * Math.sqrt(u + v);
}

function varianceOf(values: readonly number[], mean: number): number {
  return values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (values.length - 1);
}

/** Quantile for degrees of freedom, rounded down: the interval is rather too wide. */
function tQuantile(freedom: number): number {
  return T95[Math.max(1, Math.floor(freedom)) - 1] ?? 1.96 + 2.5 / freedom;
}

/** Table of comparisons for people. */
export function comparisonText(comparisons: readonly Comparison[], names: readonly [string, string]): string {
  const lines: string[] = [];
  let label = '';
  for (const { label: own, metric, unit, a, b, change, interval, verdict } of comparisons) {
    if (own !== label) {
      lines.push(
        ...(label === '' ? [] : ['']),
        own,
        `  ${''.padEnd(18)}${names[0].padStart(22)}${names[1].padStart(22)}   change`,
      );
      label = own;
    }
    const signed = (value: number) => `${value >= 0 ? '+' : ''}${value.toFixed(1)}`;
    const range = interval === null ? '' : ` [${signed(interval[0])}, ${signed(interval[1])}]`;
    const words = change === null ? '' : `${signed(change)} %${range}`;
    const judged = verdict === 'unknown' ? '' : `  ${verdict}`;
    lines.push(
      `  ${`${metric}${unit && `, ${unit}`}`.padEnd(18)}${meanText(a).padStart(22)}${meanText(b).padStart(22)}   ${words}${judged}`,
    );
  }
  const isSingle = comparisons.some(({ change, interval }) => change !== null && interval === null);
  if (isSingle) lines.push('', 'No interval without at least two runs on each side: --repeat N makes them.');
  return `${lines.join('\n')}\n`;
}

function meanText({ mean, half }: Mean): string {
  const digits = Math.abs(mean) < 10 ? 2 : 1;
  return mean.toFixed(digits) + (half === null ? '' : ` ± ${half.toFixed(digits)}`);
}
