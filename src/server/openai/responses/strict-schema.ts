import type { ResponseRequest } from '../schemas/responses.js';

type Tool = NonNullable<ResponseRequest['tools']>[number];

/** Keywords that need no look inside, beside those that hold schemas. */
const PLAIN = new Set([
  'type',
  'description',
  'title',
  'enum',
  'const',
  'required',
  'additionalProperties',
  '$ref',
]);

/**
 * Whether the arguments of a call follow the function's schema even where the model chooses to call. What is not said is
 * taken as OpenAI's Responses does (and its chat does not): strict where the schema is one that strict asks for, in which
 * each object lists all its members as required and allows no others; else not.
 */
export function isStrict({ strict, parameters }: Tool): boolean {
  if (strict !== undefined && strict !== null) return strict;
  return isRecord(parameters) && parameters.type === 'object' && fitsStrict(parameters);
}

function fitsStrict(schema: unknown): boolean {
  if (!isRecord(schema)) return false;
  const { properties, required, additionalProperties } = schema;
  for (const [keyword, value] of Object.entries(schema)) {
    if (PLAIN.has(keyword)) continue;
    const inner =
      (keyword === 'properties' || keyword === '$defs') && isRecord(value)
        ? Object.values(value)
        : keyword === 'anyOf' && Array.isArray(value)
          ? value
          : keyword === 'items'
            ? [value]
            : null;
    if (inner === null || !inner.every(fitsStrict)) return false;
  }
  if (schema.type !== 'object') return properties === undefined;
  if (additionalProperties !== false) return false;
  const names = Object.keys(isRecord(properties) ? properties : {});
  return names.every((name) => Array.isArray(required) && required.includes(name));
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
