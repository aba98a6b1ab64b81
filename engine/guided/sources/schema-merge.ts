import { spend } from '../reading-work.js';
import { leastCommonMultiple } from './decimals.js';
import { isObject, type JsonValue, type Schema, type SchemaObject, shown } from './schema-keywords.js';
import type { SchemaPatterns } from './schema-patterns.js';

/** Steps that merging two schemas costs, and as many for each keyword. */
const MERGE_WORK = 10;

type Merged = { [keyword: string]: JsonValue };

/** Where two schemas are merged, and what that takes. */
export interface Merging {
  readonly patterns: SchemaPatterns;
  /** Notes what cannot be merged: the first one's keyword then stays. */
  unsupported(what: string): void;
}

/** Keywords that are merged together with others. */
const OF_PROPERTIES = ['properties', 'patternProperties', 'additionalProperties'];
const OF_ITEMS = ['prefixItems', 'items'];
const OF_CONTAINS = ['contains', 'minContains', 'maxContains'];

/**
 * Merges two schemas into one that holds if both hold. References and choices have been resolved. `pattern`, `format` and `not`
 * become lists where they differ.
 */
export function mergeSchemas(a: Schema, b: Schema, merging: Merging): Schema {
  if (a === false || b === false) return false;
  if (a === true) return b;
  if (b === true) return a;
  const merged: Merged = { ...a };
  spend(MERGE_WORK);
  for (const [keyword, value] of Object.entries(b)) {
    spend(MERGE_WORK);
    if (OF_PROPERTIES.includes(keyword) || OF_ITEMS.includes(keyword) || OF_CONTAINS.includes(keyword))
      continue;
    const known = merged[keyword];
    merged[keyword] = known === undefined ? value : mergeKeyword(keyword, known, value, merging);
  }
  if (OF_PROPERTIES.some((keyword) => keyword in a || keyword in b)) mergeProperties(merged, a, b, merging);
  if (OF_ITEMS.some((keyword) => keyword in b)) mergeItems(merged, a, b);
  if ('contains' in b) mergeContains(merged, a, b, merging);
  const isEmpty = ['type', 'enum'].some((keyword) => {
    const values = merged[keyword];
    return Array.isArray(values) && values.length === 0;
  });
  return isEmpty ? false : merged;
}

function mergeKeyword(keyword: string, a: JsonValue, b: JsonValue, merging: Merging): JsonValue {
  const written = JSON.stringify(a);
  spend(written.length);
  if (written === JSON.stringify(b)) return a;
  switch (keyword) {
    case 'type':
      return commonTypes(listed(a), listed(b));
    case 'enum':
      return commonValues(a as JsonValue[], b as JsonValue[]);
    case 'required':
    case 'pattern':
    case 'format':
    case 'not':
      return [...new Set([...listed(a), ...listed(b)])];
    case 'minLength':
    case 'minItems':
    case 'minProperties':
    case 'minimum':
    case 'exclusiveMinimum':
      return Math.max(a as number, b as number);
    case 'maxLength':
    case 'maxItems':
    case 'maxProperties':
    case 'maximum':
    case 'exclusiveMaximum':
      return Math.min(a as number, b as number);
    case 'uniqueItems':
      return true;
    case 'propertyNames':
      return { allOf: [a, b] };
    case 'multipleOf': {
      const common = leastCommonMultiple(a as number, b as number);
      if (common !== null) return common;
    }
  }
  merging.unsupported(`${keyword} ${shown(a)} together with ${keyword} ${shown(b)} is not supported`);
  return a;
}

/** A schema that holds if both hold; absent ones hold for every value. */
function both(a: JsonValue | undefined, b: JsonValue | undefined): JsonValue {
  if (a === undefined || a === true) return b ?? true;
  return b === undefined || b === true ? a : { allOf: [a, b] };
}

const schemasOf = (value: JsonValue | undefined) => (value ?? {}) as { [name: string]: JsonValue };

/** Merges properties. A property that only one schema names must also fulfil what the other says of such names. */
function mergeProperties(merged: Merged, a: SchemaObject, b: SchemaObject, merging: Merging): void {
  const [ofA, ofB] = [schemasOf(a.properties), schemasOf(b.properties)];
  const properties: Merged = Object.create(null);
  for (const name of new Set([...Object.keys(ofA), ...Object.keys(ofB)])) {
    spend(MERGE_WORK);
    const inA = Object.hasOwn(ofA, name) ? ofA[name] : merging.patterns.schemaOfOther(a, name);
    const inB = Object.hasOwn(ofB, name) ? ofB[name] : merging.patterns.schemaOfOther(b, name);
    properties[name] = both(inA, inB);
  }
  if (Object.keys(properties).length > 0) merged.properties = properties;
  mergePatterns(merged, a, b, merging);
  const [othersA, othersB] = [a.additionalProperties, b.additionalProperties];
  if (othersA === undefined && othersB === undefined) return;
  merged.additionalProperties = othersA === false || othersB === false ? false : both(othersA, othersB);
}

/** Merges patterns of names: a name of one schema's pattern is an additional one of the other, unless that has patterns too. */
function mergePatterns(merged: Merged, a: SchemaObject, b: SchemaObject, merging: Merging): void {
  const [ofA, ofB] = [schemasOf(a.patternProperties), schemasOf(b.patternProperties)];
  const patterns: Merged = Object.create(null);
  for (const [own, others, theirs] of [
    [ofA, ofB, b.additionalProperties],
    [ofB, ofA, a.additionalProperties],
  ] as const) {
    const isOpen = theirs === undefined || theirs === true;
    if (!isOpen && Object.keys(own).length > 0 && Object.keys(others).length > 0)
      merging.unsupported(
        'patternProperties of two schemas, one of them with additionalProperties, are not supported',
      );
    for (const [pattern, schema] of Object.entries(own)) {
      spend(MERGE_WORK);
      const inOther = Object.hasOwn(others, pattern)
        ? others[pattern]
        : Object.keys(others).length > 0
          ? true
          : theirs;
      patterns[pattern] = both(schema, inOther);
    }
  }
  if (Object.keys(patterns).length > 0) merged.patternProperties = patterns;
}

function mergeItems(merged: Merged, a: SchemaObject, b: SchemaObject): void {
  const [first, second] = [listed(a.prefixItems), listed(b.prefixItems)];
  const count = Math.max(first.length, second.length);
  spend(count);
  if (count > 0)
    merged.prefixItems = Array.from({ length: count }, (_, i) =>
      both(first[i] ?? a.items, second[i] ?? b.items),
    );
  if (a.items !== undefined || b.items !== undefined)
    merged.items = a.items === false || b.items === false ? false : both(a.items, b.items);
}

function mergeContains(merged: Merged, a: SchemaObject, b: SchemaObject, merging: Merging): void {
  const of = (schema: SchemaObject) => OF_CONTAINS.map((keyword) => schema[keyword] ?? null);
  if ('contains' in a) {
    if (canonical(of(a)) !== canonical(of(b)))
      merging.unsupported('several contains at once are not supported');
    return;
  }
  for (const keyword of OF_CONTAINS) if (b[keyword] !== undefined) merged[keyword] = b[keyword];
}

export function listed(value: JsonValue | undefined): JsonValue[] {
  return value === undefined ? [] : Array.isArray(value) ? value : [value];
}

function commonValues(a: JsonValue[], b: JsonValue[]): JsonValue[] {
  const ofB = new Set(b.map(canonical));
  return a.filter((value) => ofB.has(canonical(value)));
}

/** Types that both lists allow; an integer is a number. */
function commonTypes(a: JsonValue[], b: JsonValue[]): JsonValue[] {
  const has = (list: JsonValue[], type: JsonValue) =>
    list.includes(type) || (type === 'integer' && list.includes('number'));
  return [...new Set([...a, ...b])].filter((type) => has(a, type) && has(b, type));
}

/**
 * Text that is the same for values that JSON Schema considers equal: the order of keys does not count, and 1.0 is 1.
 */
export function canonical(value: JsonValue): string {
  spend(4);
  if (Array.isArray(value)) return `[${value.map(canonical).join()}]`;
  if (!isObject(value)) return JSON.stringify(value === 0 ? 0 : value);
  const entries = Object.keys(value)
    .sort()
    .map((key) => `${JSON.stringify(key)}:${canonical(value[key]!)}`);
  return `{${entries.join()}}`;
}
