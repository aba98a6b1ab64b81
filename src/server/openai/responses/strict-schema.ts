import { isObject } from '../../../../base/option-values.js';
import type { ResponseFunction } from '../schemas/response-tools.js';

/** Keywords without schemas inside, as opposed to those that hold schemas. */
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
 * True where the arguments of a call must follow the function's schema even where the model chooses to call. The
 * default is that of OpenAI's Responses (not of its chat): strict where the schema has the form that strict asks for,
 * in which each object lists all its members as required and allows no others.
 */
export function isStrict({ strict, parameters }: ResponseFunction): boolean {
  if (strict !== undefined && strict !== null) return strict;
  return isObject(parameters) && parameters.type === 'object' && fitsStrict(parameters);
}

function fitsStrict(schema: unknown): boolean {
  if (!isObject(schema)) return false;
  const { properties, required, additionalProperties } = schema;
  for (const [keyword, value] of Object.entries(schema)) {
    if (PLAIN.has(keyword)) continue;
    const inner =
      (keyword === 'properties' || keyword === '$defs') && isObject(value)
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
  const names = Object.keys(isObject(properties) ? properties : {});
  return names.every((name) => Array.isArray(required) && required.includes(name));
}
