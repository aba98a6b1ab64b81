// A strict reader of Prometheus' text format (version 0.0.4): what it does not refuse, Prometheus reads.

export type MetricType = 'counter' | 'gauge' | 'histogram' | 'summary' | 'untyped';

export interface Sample {
  /** The sample's name, with _bucket, _sum or _count where it has one of them. */
  name: string;
  labels: Readonly<Record<string, string>>;
  value: number;
}

export interface Family {
  name: string;
  help: string;
  type: MetricType;
  samples: Sample[];
}

const NAME = /^[a-zA-Z_:][a-zA-Z0-9_:]*$/;
const LABEL = /^[a-zA-Z_][a-zA-Z0-9_]*$/;
const TYPES: ReadonlySet<string> = new Set(['counter', 'gauge', 'histogram', 'summary', 'untyped']);
// Prometheus reads NaN in any case, and prom-client writes it so.
const NUMBER = /^([+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]Inf|NaN|Nan)$/;
const PARTS = { histogram: ['_bucket', '_sum', '_count'], summary: ['', '_sum', '_count'] } as const;

/**
 * The families of a scrape, by name.
 * @throws Error naming the line for anything that the format does not allow: a sample before its TYPE or of another
 * family, a family in two places, a series twice, a name, label or value that is none, a counter below zero, a histogram
 * whose buckets are not cumulative, lack +Inf, or do not agree with its count.
 */
export function parseExposition(text: string): Map<string, Family> {
  if (!text.endsWith('\n')) throw new Error('The last line does not end.');
  const families = new Map<string, Family>();
  const seen = new Set<string>();
  let current: Family | null = null;
  let help: { name: string; text: string } | null = null;
  for (const [index, line] of text.slice(0, -1).split('\n').entries()) {
    const where = `line ${index + 1}: ${line}`;
    if (line === '') continue;
    if (line.startsWith('# HELP ')) {
      const [, name = '', words = ''] = /^# HELP (\S+) (.+)$/.exec(line) ?? [];
      if (!NAME.test(name)) throw new Error(`HELP without a name or a text, ${where}`);
      help = { name, text: words };
    } else if (line.startsWith('# TYPE ')) {
      const [, name = '', type = ''] = /^# TYPE (\S+) (\S+)$/.exec(line) ?? [];
      if (!NAME.test(name) || !TYPES.has(type)) throw new Error(`No TYPE, ${where}`);
      if (families.has(name)) throw new Error(`A family in two places, ${where}`);
      if (help?.name !== name) throw new Error(`A TYPE without its HELP before it, ${where}`);
      current = { name, help: help.text, type: type as MetricType, samples: [] };
      families.set(name, current);
    } else if (line.startsWith('#')) {
      throw new Error(`A comment that is none of ours, ${where}`);
    } else {
      const sample = parseSample(line, where);
      if (current === null || !belongs(sample.name, current)) throw new Error(`Of no family, ${where}`);
      const series = `${sample.name}${JSON.stringify(Object.entries(sample.labels).sort())}`;
      if (seen.has(series)) throw new Error(`A series twice, ${where}`);
      seen.add(series);
      if (current.type === 'counter' && !(sample.value >= 0))
        throw new Error(`A counter below zero, ${where}`);
      current.samples.push(sample);
    }
  }
  for (const family of families.values()) if (family.type === 'histogram') checkHistogram(family);
  return families;
}

function belongs(name: string, { name: family, type }: Family): boolean {
  if (type !== 'histogram' && type !== 'summary') return name === family;
  return PARTS[type].some((part) => name === family + part);
}

function parseSample(line: string, where: string): Sample {
  const match = /^([^\s{]+)(?:\{(.*)\})? (\S+)$/.exec(line);
  if (match === null) throw new Error(`No sample, ${where}`);
  const [, name = '', inside, value = ''] = match;
  if (!NAME.test(name)) throw new Error(`No name of a metric, ${where}`);
  if (!NUMBER.test(value)) throw new Error(`No number, ${where}`);
  return { name, labels: inside === undefined ? {} : parseLabels(inside, where), value: numberOf(value) };
}

function numberOf(text: string): number {
  if (text === '+Inf') return Number.POSITIVE_INFINITY;
  return text === '-Inf' ? Number.NEGATIVE_INFINITY : Number(text);
}

function parseLabels(inside: string, where: string): Record<string, string> {
  const labels: Record<string, string> = {};
  const pair = /([^=,]+)="((?:[^"\\\n]|\\[\\"n])*)"(,|$)/y;
  while (pair.lastIndex < inside.length) {
    const match = pair.exec(inside);
    if (match === null) throw new Error(`No labels, ${where}`);
    const [, name = '', value = ''] = match;
    if (!LABEL.test(name) || name.startsWith('__')) throw new Error(`No name of a label, ${where}`);
    if (name in labels) throw new Error(`A label twice, ${where}`);
    labels[name] = value.replace(/\\(.)/g, (_, escaped: string) => (escaped === 'n' ? '\n' : escaped));
  }
  return labels;
}

function checkHistogram({ name, samples }: Family): void {
  const series = new Map<string, { buckets: [number, number][]; count?: number; hasSum: boolean }>();
  for (const { name: sampleName, labels, value } of samples) {
    const { le, ...others } = labels;
    const key = JSON.stringify(Object.entries(others).sort());
    const one = series.get(key) ?? { buckets: [], hasSum: false };
    series.set(key, one);
    if (sampleName.endsWith('_bucket')) {
      if (le === undefined || !NUMBER.test(le)) throw new Error(`${name} has a bucket without a bound.`);
      one.buckets.push([numberOf(le), value]);
    } else if (sampleName.endsWith('_sum')) one.hasSum = true;
    else one.count = value;
  }
  for (const [key, { buckets, count, hasSum }] of series) {
    for (let i = 1; i < buckets.length; i++) {
      if (buckets[i]![0] <= buckets[i - 1]![0]) throw new Error(`${name} ${key}: bounds that do not rise.`);
      if (buckets[i]![1] < buckets[i - 1]![1]) throw new Error(`${name} ${key}: buckets that do not add up.`);
    }
    const last = buckets.at(-1);
    if (last?.[0] !== Number.POSITIVE_INFINITY) throw new Error(`${name} ${key}: no bucket +Inf.`);
    if (!hasSum || last[1] !== count) throw new Error(`${name} ${key}: no sum, or a count of its own.`);
  }
}
