import type { Family } from './exposition.js';

/** A series that a query reads. */
export interface QueriedSeries {
  /** The metric's name, with _bucket, _sum or _count where it has one of them. */
  name: string;
  /** Labels that the query selects or groups by. */
  labels: string[];
  /** True: a rate(), increase() or the like, which only a counter has. */
  isRate: boolean;
}

const WORDS = new Set([
  ...[
    'and',
    'or',
    'unless',
    'bool',
    'offset',
    'by',
    'without',
    'on',
    'ignoring',
    'group_left',
    'group_right',
  ],
  ...['inf', 'Inf', 'nan', 'NaN'],
]);
/** Given to every series by Prometheus, which knows where it scraped it; the last three in Kubernetes. */
const TARGET_LABELS = new Set(['job', 'instance', 'namespace', 'service', 'pod']);

/** Every query of a Grafana dashboard: those of its panels, of panels in rows too, and of its variables. */
export function dashboardQueries(dashboard: unknown): string[] {
  const queries: string[] = [];
  const visit = (value: unknown): void => {
    if (Array.isArray(value)) value.forEach(visit);
    else if (typeof value === 'object' && value !== null) {
      for (const [key, inner] of Object.entries(value)) {
        if (typeof inner === 'string' && isQuery(key, inner)) queries.push(inner);
        else visit(inner);
      }
    }
  };
  visit(dashboard);
  return [...new Set(queries)];
}

function isQuery(key: string, text: string): boolean {
  return key === 'expr' || (key === 'query' && text.startsWith('label_values('));
}

/** The series that a query in PromQL reads, as far as names tell. */
export function queriedSeries(query: string): QueriedSeries[] {
  const variable = /^label_values\(([^,()]+),\s*(\w+)\)$/.exec(query);
  if (variable !== null) return [{ name: variable[1]!.trim(), labels: [variable[2]!], isRate: false }];
  if (query.startsWith('label_values(')) return [];
  const series: QueriedSeries[] = [];
  const grouped: string[] = [];
  const withoutGroups = query.replace(/\b(?:by|without|on|ignoring)\s*\(([^)]*)\)/g, (_, list: string) => {
    grouped.push(...list.split(',').map((name) => name.trim()));
    return ' ';
  });
  const reference = /([a-zA-Z_:][a-zA-Z0-9_:]*)(\s*\()?(?:\{([^}]*)\})?|"[^"]*"|\[[^\]]*\]|\$\w+/g;
  let caller = '';
  for (const [, name, call, matchers = ''] of withoutGroups.matchAll(reference)) {
    if (name === undefined || WORDS.has(name)) continue;
    if (call !== undefined) {
      caller = name;
      continue;
    }
    const selected = [...matchers.matchAll(/([a-zA-Z_]\w*)\s*[=!]/g)].map(([, label]) => label!);
    series.push({ name, labels: [...selected], isRate: /^(rate|irate|increase)$/.test(caller) });
    caller = '';
  }
  for (const one of series) one.labels = [...new Set([...one.labels, ...grouped])];
  return series;
}

/** Faults that keep a scrape from answering a query; none if it is answered. Groups count for any of its series. */
export function queryFaults(query: string, families: ReadonlyMap<string, Family>): string[] {
  const faults: string[] = [];
  for (const { name, labels, isRate } of queriedSeries(query)) {
    if (name === 'up') continue;
    const family = familyOf(name, families);
    const samples = family?.samples.filter((sample) => sample.name === name) ?? [];
    if (family === undefined || samples.length === 0) {
      faults.push(`There is no series ${name}.`);
      continue;
    }
    for (const label of labels) {
      if (TARGET_LABELS.has(label) || samples.some((sample) => label in sample.labels)) continue;
      faults.push(`${name} has no label ${label}.`);
    }
    if (isRate && family.type === 'gauge') faults.push(`${name} is a gauge, which has no rate.`);
    if (!isRate && family.type === 'histogram' && !/_(count|sum|bucket)$/.test(name)) {
      faults.push(`${name} is a histogram and no series.`);
    }
  }
  return faults;
}

function familyOf(name: string, families: ReadonlyMap<string, Family>): Family | undefined {
  const plain = families.get(name);
  if (plain !== undefined && plain.type !== 'histogram') return plain;
  const part = /^(.*)_(bucket|sum|count)$/.exec(name);
  const family = part === null ? plain : families.get(part[1]!);
  return family?.type === 'histogram' || family?.type === 'summary' ? family : plain;
}
