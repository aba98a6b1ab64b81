import { spend } from '../reading-work.js';
import {
  isObject,
  isOfType,
  type JsonValue,
  type Schema,
  type SchemaObject,
  TYPES,
  type TypeName,
} from './schema-keywords.js';
import { canonical, listed } from './schema-merge.js';

/** Values that a property can only have, as `canonical` writes them. */
interface Constants {
  name: string;
  values: ReadonlySet<string>;
}

/**
 * Pairs of branches, each given as its alternatives, that could hold for the same value, as far as is known.
 */
export function overlaps(branches: readonly Schema[][]): [number, number][] {
  const found: [number, number][] = [];
  for (const [i, one] of branches.entries())
    for (let k = i + 1; k < branches.length; k++)
      if (!one.every((a) => branches[k]!.every((b) => areDisjoint(a, b)))) found.push([i, k]);
  return found;
}

/** A property whose constants distinguish branches of objects, required or not; null: there is none. */
export function commonDiscriminator(branches: readonly Schema[][]): string | null {
  const [first] = branches[0] ?? [];
  if (!isObject(first)) return null;
  const all = branches.map((alternatives) => alternatives.map(asObject));
  for (const { name } of constants(first)) {
    const seen = new Set<string>();
    const isTelling = all.every((alternatives) => {
      const values = alternatives.map(
        (one) => one && constants(one).find((constant) => constant.name === name),
      );
      const own = values.flatMap((one) => [...(one?.values ?? [])]);
      const isNew = values.every(Boolean) && own.every((value) => !seen.has(value));
      for (const value of own) seen.add(value);
      return isNew;
    });
    if (isTelling) return name;
  }
  return null;
}

/** The schema, if all its values are objects. */
function asObject(schema: Schema): SchemaObject | null {
  return isObject(schema) && (schema.type === 'object' || schema.properties !== undefined) ? schema : null;
}

function areDisjoint(a: Schema, b: Schema): boolean {
  spend(10);
  if (a === false || b === false) return true;
  if (a === true || b === true) return false;
  if (a.enum !== undefined && b.enum !== undefined) {
    const values = new Set((a.enum as JsonValue[]).map(canonical));
    return !(b.enum as JsonValue[]).some((value) => values.has(canonical(value)));
  }
  const [typesA, typesB] = [possibleTypes(a), possibleTypes(b)];
  const common = typesA.filter((type) => typesB.includes(type));
  if (common.length === 0) return true;
  if (common.some((type) => type !== 'object')) return false;
  return requiredConstants(a).some(({ name, values }) =>
    requiredConstants(b).some(
      (other) => other.name === name && ![...other.values].some((value) => values.has(value)),
    ),
  );
}

/** Types of all values that the schema allows; a number may be an integer. */
function possibleTypes(schema: SchemaObject): TypeName[] {
  const named = listed(schema.type) as TypeName[];
  const types =
    named.length === 0 ? [...TYPES] : named.includes('number') ? [...named, 'integer' as const] : named;
  if (schema.enum === undefined) return types;
  return types.filter((type) => (schema.enum as JsonValue[]).some((value) => isOfType(value, type)));
}

/** Properties that every object of the schema has, with the only values that they can have. */
function requiredConstants(schema: SchemaObject): Constants[] {
  const required = (schema.required ?? []) as string[];
  return constants(schema).filter(({ name }) => required.includes(name));
}

/** Properties that can only have some values. */
function constants({ properties }: SchemaObject): Constants[] {
  return Object.entries((properties ?? {}) as SchemaObject).flatMap(([name, schema]) => {
    spend(1);
    if (!isObject(schema)) return [];
    const values = schema.const !== undefined ? [schema.const] : schema.enum;
    return Array.isArray(values) ? [{ name, values: new Set(values.map(canonical)) }] : [];
  });
}
