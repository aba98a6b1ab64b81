import { isObject, isSchemaKeyword, type JsonValue } from './schema-keywords.js';

/** Keywords that hold a schema, a list of schemas, or schemas by names. */
const ONE = [
  ...['additionalProperties', 'items', 'not', 'if', 'then', 'else', 'contains', 'propertyNames'],
  ...['unevaluatedProperties', 'unevaluatedItems', 'additionalItems'],
];
const LISTS = ['anyOf', 'oneOf', 'allOf', 'items', 'prefixItems'];
const BY_NAME = ['properties', '$defs', 'definitions', 'patternProperties', 'dependentSchemas'];

/**
 * A schema without unknown keywords (OpenAPI's `nullable`), which JSON Schema lets a reader ignore, for schemas that are a wish
 * and no contract. Bounds in the form of draft 4 get that of later ones. Known keywords stay, followed or not.
 */
export function lenientSchema(schema: JsonValue): JsonValue {
  if (!isObject(schema)) return schema;
  const kept: [string, JsonValue][] = [];
  for (const [keyword, value] of Object.entries(schema)) {
    if (!isSchemaKeyword(keyword)) continue;
    kept.push([keyword, inner(keyword, value)]);
  }
  return Object.fromEntries(kept.map((entry) => laterForm(entry, schema)).filter((entry) => entry !== null));
}

function inner(keyword: string, value: JsonValue): JsonValue {
  if (LISTS.includes(keyword) && Array.isArray(value)) return value.map(lenientSchema);
  if (ONE.includes(keyword)) return lenientSchema(value);
  if (!BY_NAME.includes(keyword) || !isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, lenientSchema(one)]));
}

/**
 * A bound of draft 4, where `exclusiveMinimum: true` says how `minimum` is meant, in the form of later drafts; null: it
 * is left out.
 */
function laterForm(
  [keyword, value]: [string, JsonValue],
  schema: { [keyword: string]: JsonValue },
): [string, JsonValue] | null {
  for (const [bound, exclusive] of [
    ['minimum', 'exclusiveMinimum'],
    ['maximum', 'exclusiveMaximum'],
  ] as const) {
    if (keyword === bound && schema[exclusive] === true) return [exclusive, value];
    if (keyword === exclusive && typeof value === 'boolean') return null;
  }
  return [keyword, value];
}
