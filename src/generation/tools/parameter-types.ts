import type { FunctionTool } from './types.js';

type Schema = Readonly<Record<string, unknown>>;

/** Types that values of an argument may have, in JSON schema's words; null: any. */
export function typesOfParameter({ parameters }: FunctionTool, name: string): ReadonlySet<string> | null {
  const properties = parameters?.properties as Readonly<Record<string, unknown>> | undefined;
  if (properties === undefined || !Object.hasOwn(properties, name)) return null;
  return typesOf(properties[name], 0);
}

/** Deepest nesting of choices that is followed. */
const MAX_DEPTH = 8;

export function typesOf(schema: unknown, depth: number): ReadonlySet<string> | null {
  if (typeof schema !== 'object' || schema === null || depth > MAX_DEPTH) return null;
  const { type, const: constant, enum: values, anyOf, oneOf } = schema as Schema;
  if (typeof type === 'string') return new Set([type]);
  if (Array.isArray(type)) return new Set(type as string[]);
  if (constant !== undefined) return new Set([typeOf(constant)]);
  if (Array.isArray(values)) return new Set(values.map(typeOf));
  const branches = anyOf ?? oneOf;
  if (!Array.isArray(branches)) return null;
  const all = branches.map((branch) => typesOf(branch, depth + 1));
  return all.includes(null) ? null : new Set(all.flatMap((types) => [...types!]));
}

function typeOf(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'array';
  return typeof value;
}

/** True where a value has one of the types; a whole number is a number too. */
export function isOneOf(value: unknown, types: ReadonlySet<string>): boolean {
  return types.has(typeOf(value)) || (types.has('integer') && Number.isInteger(value));
}
