/** Any value of JSON. */
export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };

/** Texts of an event that stand for themselves, and are no piece of a longer one. */
const WHOLE = new Set([
  'role',
  'type',
  'id',
  'object',
  'model',
  'finish_reason',
  'system_fingerprint',
  'service_tier',
]);

/** What differs from one asking of a request to the next: names, times, and what a cache had. */
const VOLATILE = new Set([
  ...['id', 'created', 'created_at', 'completed_at', 'obfuscation', 'call_id', 'timings'],
  ...['prompt_tokens_details', 'input_tokens_details'],
]);

/** Of Anthropic's tokens of a prompt those that were in a cache count apart. */
const CACHE_COUNTS = ['cache_read_input_tokens', 'cache_creation_input_tokens'];

/**
 * All events of a stream as one answer: texts are joined, lists too, but for those whose items have an index, which are joined by it.
 * So it does not matter how an answer was cut into events.
 */
export function fold(events: readonly unknown[]): Json {
  return events.reduce<Json>((sum, event) => joined(sum, event as Json, ''), null);
}

function joined(before: Json, next: Json, name: string): Json {
  if (before === null || next === null) return next ?? before;
  if (typeof before === 'string' && typeof next === 'string') return WHOLE.has(name) ? next : before + next;
  if (Array.isArray(before) && Array.isArray(next)) return joinedLists(before, next);
  if (isObject(before) && isObject(next)) {
    const sum = { ...before };
    for (const [key, value] of Object.entries(next)) sum[key] = joined(sum[key] ?? null, value, key);
    return sum;
  }
  return next;
}

function joinedLists(before: readonly Json[], next: readonly Json[]): Json[] {
  const sum = [...before];
  for (const item of next) {
    const index = isObject(item) ? item.index : undefined;
    const at = sum.findIndex((one) => index !== undefined && isObject(one) && one.index === index);
    if (at < 0) sum.push(item);
    else sum[at] = joined(sum[at]!, item, '');
  }
  return sum.every((item) => isObject(item) && typeof item.index === 'number')
    ? sum.toSorted((a, b) => indexOf(a) - indexOf(b))
    : sum;
}

const indexOf = (item: Json) => (item as { index: number }).index;
const isObject = (value: Json | undefined): value is { [name: string]: Json } =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** An answer without what differs each time that it is asked for. */
export function stable(value: Json): Json {
  if (Array.isArray(value)) return value.map(stable);
  if (!isObject(value)) return value;
  const kept = Object.entries(value).filter(([name]) => !VOLATILE.has(name) && !CACHE_COUNTS.includes(name));
  const result = Object.fromEntries(kept.map(([name, inner]) => [name, stable(inner)]));
  for (const name of CACHE_COUNTS) {
    const count = value[name];
    if (typeof count === 'number') result.input_tokens = Number(result.input_tokens ?? 0) + count;
  }
  return result;
}
