import type { Family } from './exposition.js';

/** A series that a query reads. */
export interface QueriedSeries {
  /** The metric's name, with _bucket, _sum or _count where it has one of them. */
  name: string;
  /** Labels that it is selected by. */
  labels: string[];
  /** Labels that the query groups or joins by, of this series or of another of it. */
  groups: string[];
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
/** Given to every series by Prometheus, which knows where it scraped it; all but the first two in Kubernetes. */
const TARGET_LABELS = new Set(['job', 'instance', 'namespace', 'service', 'pod', 'endpoint']);

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

/** The series and the label whose values a chooser of a dashboard offers; null: the query is no chooser's. */
export function variableOf(query: string): { series: string | null; label: string } | null {
  const [, series, label] = /^label_values\((?:(.+),\s*)?(\w+)\)$/s.exec(query) ?? [];
  return label === undefined ? null : { series: series ?? null, label };
}

/** The series that a query in PromQL reads, as far as names show. */
export function queriedSeries(query: string): QueriedSeries[] {
  const variable = variableOf(query);
  if (variable !== null) {
    const { series, label } = variable;
    return (series === null ? [] : queriedSeries(series)).map((one) => {
      return { ...one, labels: [...new Set([...one.labels, label])] };
    });
  }
  const series: QueriedSeries[] = [];
  const grouped: string[] = [];
  const groups = /\b(?:by|without|on|ignoring|group_left|group_right)\s*\(([^)]*)\)/g;
  const withoutGroups = query.replace(groups, (_, list: string) => {
    for (const name of list.split(',')) if (name.trim() !== '') grouped.push(name.trim());
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
    series.push({
      name,
      labels: [...new Set(selected)],
      groups: [...new Set(grouped)],
      isRate: /^(rate|irate|increase)$/.test(caller),
    });
    caller = '';
  }
  return series;
}

/**
 * Faults that keep a scrape from answering a query; none if it is answered. A label that it groups by is there if any of
 * its series has it.
 * @param mayLack says of a series that it is no fault where it is absent
 */
export function queryFaults(
  query: string,
  families: ReadonlyMap<string, Family>,
  mayLack: (name: string) => boolean = () => false,
): string[] {
  const faults: string[] = [];
  const asked = queriedSeries(query).filter(({ name }) => name !== 'up' && !mayLack(name));
  const missing = new Set(asked.flatMap(({ groups }) => groups));
  for (const label of TARGET_LABELS) missing.delete(label);
  for (const { name, labels, isRate } of asked) {
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
    for (const label of missing) if (samples.some((sample) => label in sample.labels)) missing.delete(label);
    if (isRate && family.type === 'gauge') faults.push(`${name} is a gauge, which has no rate.`);
    if (!isRate && family.type === 'histogram' && !/_(count|sum|bucket)$/.test(name)) {
      faults.push(`${name} is a histogram and no series.`);
    }
  }
  const present = faults.length === 0 && asked.length > 0;
  return [
    ...faults,
    ...(present ? [...missing].map((label) => `No series of it has the label ${label}.`) : []),
  ];
}

function familyOf(name: string, families: ReadonlyMap<string, Family>): Family | undefined {
  const plain = families.get(name);
  if (plain !== undefined && plain.type !== 'histogram') return plain;
  const part = /^(.*)_(bucket|sum|count)$/.exec(name);
  const family = part === null ? plain : families.get(part[1]!);
  return family?.type === 'histogram' || family?.type === 'summary' ? family : plain;
}
