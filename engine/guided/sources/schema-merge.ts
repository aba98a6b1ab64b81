import { spend } from '../reading-work.js';
import { fault, isObject, type JsonValue, type Schema, type SchemaObject, shown } from './schema-keywords.js';

/** Steps that merging two schemas costs, and as many for each keyword. */
const MERGE_WORK = 10;

type Merged = { [keyword: string]: JsonValue };

/**
 * Merges two schemas into one that holds if both hold. References and choices have been resolved. @throws GuideError
 */
export function mergeSchemas(a: Schema, b: Schema, path: string): Schema {
  if (a === false || b === false) return false;
  if (a === true) return b;
  if (b === true) return a;
  const merged: Merged = { ...a };
  spend(MERGE_WORK);
  for (const [keyword, value] of Object.entries(b)) {
    spend(MERGE_WORK);
    if (keyword === 'properties' || keyword === 'additionalProperties') continue;
    const known = merged[keyword];
    merged[keyword] = known === undefined ? value : mergeKeyword(keyword, known, value, path);
  }
  if ('properties' in a || 'properties' in b || 'additionalProperties' in b) mergeProperties(merged, a, b);
  return Array.isArray(merged.type) && merged.type.length === 0 ? false : merged;
}

function mergeKeyword(keyword: string, a: JsonValue, b: JsonValue, path: string): JsonValue {
  const written = JSON.stringify(a);
  spend(written.length);
  if (written === JSON.stringify(b)) return a;
  switch (keyword) {
    case 'type':
      return commonTypes(listed(a), listed(b));
    case 'enum':
      return commonValues(a as JsonValue[], b as JsonValue[]);
    case 'required':
      return [...new Set([...(a as string[]), ...(b as string[])])];
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
      return a === true || b === true;
    case 'items':
      if (!Array.isArray(a) && !Array.isArray(b)) return { allOf: [a, b] };
  }
  throw fault(
    path,
    `it asks for ${keyword} ${shown(a)} and ${keyword} ${shown(b)} at once, which is not supported`,
  );
}

/** Merges properties. A property that only one schema names must also fulfil the other's additional properties. */
function mergeProperties(merged: Merged, a: SchemaObject, b: SchemaObject): void {
  const propertiesOf = (schema: SchemaObject) => (schema.properties ?? {}) as { [name: string]: JsonValue };
  const [ofA, ofB] = [propertiesOf(a), propertiesOf(b)];
  const properties: { [name: string]: JsonValue } = Object.create(null);
  const both = (x: JsonValue | undefined, y: JsonValue | undefined): JsonValue => {
    if (x === undefined || x === true) return y ?? true;
    return y === undefined || y === true ? x : { allOf: [x, y] };
  };
  for (const name of new Set([...Object.keys(ofA), ...Object.keys(ofB)])) {
    spend(MERGE_WORK);
    const inA = Object.hasOwn(ofA, name) ? ofA[name] : a.additionalProperties;
    const inB = Object.hasOwn(ofB, name) ? ofB[name] : b.additionalProperties;
    properties[name] = both(inA, inB);
  }
  if (Object.keys(properties).length > 0) merged.properties = properties;
  if (a.additionalProperties !== undefined && b.additionalProperties !== undefined) {
    const isClosed = a.additionalProperties === false || b.additionalProperties === false;
    merged.additionalProperties = isClosed ? false : both(a.additionalProperties, b.additionalProperties);
  } else if (b.additionalProperties !== undefined) merged.additionalProperties = b.additionalProperties;
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
