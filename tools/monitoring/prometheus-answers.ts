import { variableOf } from './dashboard-queries.js';

/** What Prometheus makes of a query: series with numbers; those of which none is a number (0 / 0); none; or a fault. */
export type Answer = { kind: 'data' | 'no number' | 'empty' } | { kind: 'fault'; words: string };

/** Values of Grafana's variables: `$name` of a dashboard, and `$__rate_interval`, `$__interval`, `$__range`. */
export type Variables = Readonly<Record<string, string>>;

/** A query as Grafana would send it. @throws Error naming a variable that has no value */
export function filledIn(query: string, variables: Variables): string {
  return query.replace(/\$\{?(\w+)\}?/g, (_, name: string) => {
    const value = variables[name];
    if (value === undefined) throw new Error(`The variable $${name} of a query has no value: ${query}`);
    return value;
  });
}

/** Asks the Prometheus at this address, through its HTTP API. */
export async function ask(url: string, query: string): Promise<Answer> {
  const variable = variableOf(query);
  return variable === null ? askQuery(url, query) : askLabel(url, variable);
}

async function askQuery(url: string, query: string): Promise<Answer> {
  const { error, data } = await get(`${url}/api/v1/query`, { query });
  if (error !== undefined) return { kind: 'fault', words: error };
  const { resultType, result } = data as { resultType: string; result: unknown[] };
  if (resultType === 'scalar') return { kind: 'data' };
  const values = (result as { value: [number, string] }[]).map(({ value }) => value[1]);
  if (values.length === 0) return { kind: 'empty' };
  return { kind: values.some((value) => value !== 'NaN') ? 'data' : 'no number' };
}

async function askLabel(url: string, variable: { series: string | null; label: string }): Promise<Answer> {
  const parameters = variable.series === null ? {} : { 'match[]': variable.series };
  const { error, data } = await get(`${url}/api/v1/label/${variable.label}/values`, parameters);
  if (error !== undefined) return { kind: 'fault', words: error };
  return { kind: (data as string[]).length > 0 ? 'data' : 'empty' };
}

async function get(url: string, parameters: Record<string, string>) {
  const response = await fetch(`${url}?${new URLSearchParams(parameters)}`);
  return (await response.json()) as { error?: string; data?: unknown };
}
