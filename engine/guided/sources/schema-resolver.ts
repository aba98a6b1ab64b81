import { spend } from '../reading-work.js';
import {
  checkedKeywords,
  fault,
  isObject,
  isOfType,
  type JsonValue,
  type Schema,
  type SchemaObject,
  shown,
  TYPES,
  type TypeName,
} from './schema-keywords.js';
import { canonical, listed, mergeSchemas } from './schema-merge.js';

/** Most alternatives of one value that nested choices may make. */
const MAX_ALTERNATIVES = 2000;
/** Most references that one value may lead through. */
const MAX_REFERENCES = 100;

type Property = { name: string; values: Set<string> };

/** Resolves references, allOf, anyOf and oneOf in schemas. */
export class SchemaResolver {
  readonly #root: JsonValue;

  constructor(root: JsonValue) {
    this.#root = root;
  }

  /** The reference of a schema that contains nothing else; null for any other. */
  pureReference(schema: JsonValue, path: string): string | null {
    const said = checkedKeywords(schema, path);
    if (typeof said === 'boolean' || said.$ref === undefined || Object.keys(said).length > 1) return null;
    this.target(said.$ref as string, path);
    return said.$ref as string;
  }

  /** The branches of a schema that is only a choice, of which a value must fulfil one; null for any other schema. */
  pureBranches(schema: JsonValue, path: string): { schema: JsonValue; path: string }[] | null {
    const said = checkedKeywords(schema, path);
    if (typeof said === 'boolean' || Object.keys(said).length !== 1) return null;
    const { anyOf, oneOf, allOf } = said;
    if (oneOf !== undefined) checkDisjoint(this.#branches(oneOf as JsonValue[], `${path}/oneOf`, 0), path);
    const [keyword, choice] =
      anyOf !== undefined ? ['anyOf', anyOf] : oneOf !== undefined ? ['oneOf', oneOf] : ['allOf', allOf];
    if (choice === undefined || (keyword === 'allOf' && (choice as JsonValue[]).length > 1)) return null;
    return (choice as JsonValue[]).map((branch, i) => ({ schema: branch, path: `${path}/${keyword}/${i}` }));
  }

  /** True if the schema neither refers to others nor combines others. */
  isPlain(schema: JsonValue): boolean {
    return (
      !isObject(schema) ||
      !['$ref', 'allOf', 'anyOf', 'oneOf'].some((keyword) => schema[keyword] !== undefined)
    );
  }

  /** The schema that a reference points to: # or a JSON pointer behind it. */
  target(reference: string, path: string): JsonValue {
    if (!reference.startsWith('#')) {
      throw fault(
        path,
        `$ref is ${shown(reference)}; only references within the schema, such as #/$defs/name, are supported`,
      );
    }
    let found: JsonValue | undefined = this.#root;
    const missing = () =>
      fault(path, `$ref is ${shown(reference)}, and there is no such place in the schema`);
    if (reference !== '#' && !reference.startsWith('#/')) throw missing();
    for (const part of reference.split('/').slice(1)) {
      let key: string;
      try {
        key = decodeURIComponent(part).replaceAll('~1', '/').replaceAll('~0', '~');
      } catch {
        throw missing();
      }
      const isThere: boolean = (Array.isArray(found) || isObject(found)) && Object.hasOwn(found, key);
      found = isThere ? (found as { [key: string]: JsonValue })[key] : undefined;
      if (found === undefined) throw missing();
    }
    return found;
  }

  /** Schemas without references and choices, of which a value must fulfil one. */
  alternatives(schema: JsonValue, path: string, references = 0): Schema[] {
    const said = checkedKeywords(schema, path);
    if (typeof said === 'boolean') return [said];
    const { $ref, allOf, anyOf, oneOf, const: only, ...own } = said;
    let found: Schema[] = [own];
    const and = (others: readonly Schema[]) => {
      if (found.length * others.length > MAX_ALTERNATIVES) {
        throw fault(path, `its choices make more than ${MAX_ALTERNATIVES} alternatives`);
      }
      found = found.flatMap((one) => others.map((other) => mergeSchemas(one, other, path)));
    };
    if (only !== undefined) and([{ enum: [only] }]);
    if ($ref !== undefined) {
      if (references >= MAX_REFERENCES)
        throw fault(
          path,
          `$ref ${shown($ref)} leads through more than ${MAX_REFERENCES} references, or back to itself`,
        );
      and(this.alternatives(this.target($ref as string, path), $ref as string, references + 1));
    }
    for (const [i, part] of listed(allOf).entries())
      and(this.alternatives(part, `${path}/allOf/${i}`, references + 1));
    if (anyOf !== undefined) and(this.#branches(anyOf as JsonValue[], `${path}/anyOf`, references).flat());
    if (oneOf !== undefined) {
      const branches = this.#branches(oneOf as JsonValue[], `${path}/oneOf`, references);
      checkDisjoint(branches, path);
      and(branches.flat());
    }
    return found;
  }

  #branches(schemas: readonly JsonValue[], path: string, references: number): Schema[][] {
    spend(schemas.length);
    if (references >= MAX_REFERENCES)
      throw fault(path, `schemas lead through more than ${MAX_REFERENCES} choices, or back to themselves`);
    return schemas.map((schema, i) => this.alternatives(schema, `${path}/${i}`, references + 1));
  }
}

/** Checks oneOf, which asks for exactly one: a value that fulfils one branch must not fulfil another. */
function checkDisjoint(branches: readonly Schema[][], path: string): void {
  for (const [i, one] of branches.entries()) {
    for (const other of branches.slice(i + 1)) {
      if (one.every((a) => other.every((b) => areDisjoint(a, b)))) continue;
      throw fault(
        path,
        'two branches of oneOf could hold for the same value, as far as can be told from their types, constants and required properties with constants; use anyOf',
      );
    }
  }
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
function requiredConstants({ required, properties }: SchemaObject): Property[] {
  return ((required ?? []) as string[]).flatMap((name) => {
    const schema = isObject(properties) && Object.hasOwn(properties, name) ? properties[name] : undefined;
    if (!isObject(schema)) return [];
    const values = schema.const !== undefined ? [schema.const] : schema.enum;
    return Array.isArray(values) ? [{ name, values: new Set(values.map(canonical)) }] : [];
  });
}
