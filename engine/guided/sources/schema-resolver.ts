import { asClause } from '../../../base/sentences.js';
import { GuideError } from '../guide-error.js';
import { spend } from '../reading-work.js';
import { fault, type SchemaFaults } from './schema-faults.js';
import {
  COMBINING,
  checkedKeywords,
  isObject,
  type JsonValue,
  type Schema,
  type SchemaObject,
  shown,
} from './schema-keywords.js';
import { listed, type Merging, mergeSchemas } from './schema-merge.js';
import { isOfTexts, type Negating, negated } from './schema-negation.js';
import { commonDiscriminator, overlaps } from './schema-overlaps.js';
import { SchemaPatterns } from './schema-patterns.js';

/** Most alternatives of one value that nested choices may make. */
const MAX_ALTERNATIVES = 2000;
/** Most references that one value may lead through. */
const MAX_REFERENCES = 100;

/** Resolves references, and the keywords that combine schemas. */
export class SchemaResolver {
  readonly patterns = new SchemaPatterns();
  readonly #root: JsonValue;
  readonly #faults: SchemaFaults;
  /** Schemas by their $id and $anchor; null: not yet looked for. */
  #named: ReadonlyMap<string, JsonValue> | null = null;

  constructor(root: JsonValue, faults: SchemaFaults) {
    this.#root = root;
    this.#faults = faults;
  }

  /** The reference of a schema that contains nothing else; null for any other. */
  pureReference(schema: JsonValue, path: string): string | null {
    const said = checkedKeywords(schema, path, this.#faults);
    if (typeof said === 'boolean' || said.$ref === undefined || Object.keys(said).length > 1) return null;
    if (this.#found(said.$ref as string) === undefined) return null;
    return said.$ref as string;
  }

  /** The branches of a schema that is only a choice, of which a value must fulfil one; null for any other schema. */
  pureBranches(schema: JsonValue, path: string): { schema: JsonValue; path: string }[] | null {
    const said = checkedKeywords(schema, path, this.#faults);
    if (typeof said === 'boolean' || Object.keys(said).length !== 1) return null;
    const { anyOf, oneOf, allOf } = said;
    if (oneOf !== undefined)
      return this.#exclusive(oneOf as JsonValue[], path, 0).map((branch, i) => ({
        schema: branch,
        path: `${path}/oneOf/${i}`,
      }));
    const [keyword, choice] = anyOf !== undefined ? ['anyOf', anyOf] : ['allOf', allOf];
    if (choice === undefined || (keyword === 'allOf' && (choice as JsonValue[]).length > 1)) return null;
    return (choice as JsonValue[]).map((branch, i) => ({ schema: branch, path: `${path}/${keyword}/${i}` }));
  }

  /** True if the schema neither refers to others nor combines others. */
  isPlain(schema: JsonValue): boolean {
    return !isObject(schema) || !COMBINING.some((keyword) => schema[keyword] !== undefined);
  }

  /**
   * The schema that a reference points to: # followed by a JSON pointer, or an $id or $anchor of the schema.
   */
  target(reference: string, path: string): JsonValue {
    const found = this.#found(reference);
    if (found !== undefined) return found;
    const isOutside = !reference.startsWith('#');
    throw fault(
      path,
      isOutside
        ? `$ref is ${shown(reference)}; only references within the schema, such as #/$defs/name, are supported`
        : `$ref is ${shown(reference)}, and there is no such place in the schema`,
    );
  }

  #found(reference: string): JsonValue | undefined {
    if (reference !== '#' && !reference.startsWith('#/')) {
      this.#named ??= namedSchemas(this.#root);
      return this.#named.get(reference);
    }
    let found: JsonValue | undefined = this.#root;
    for (const part of reference.split('/').slice(1)) {
      let key: string;
      try {
        key = decodeURIComponent(part).replaceAll('~1', '/').replaceAll('~0', '~');
      } catch {
        return undefined;
      }
      const isThere: boolean = (Array.isArray(found) || isObject(found)) && Object.hasOwn(found, key);
      found = isThere ? (found as { [key: string]: JsonValue })[key] : undefined;
    }
    return found;
  }

  /** Schemas without references and choices, of which a value must fulfil one. */
  alternatives(schema: JsonValue, path: string, references = 0): Schema[] {
    const said = checkedKeywords(schema, path, this.#faults);
    if (typeof said === 'boolean') return [said];
    if (references >= MAX_REFERENCES)
      throw fault(
        path,
        `it leads through more than ${MAX_REFERENCES} references or choices, or back to itself`,
      );
    const own = this.#ownKeywords(said, path);
    let found: Schema[] = [own];
    const merging: Merging = {
      patterns: this.patterns,
      unsupported: (what) => this.#faults.unsupported(path, what),
    };
    const and = (others: readonly Schema[]) => {
      if (found.length * others.length > MAX_ALTERNATIVES) {
        throw fault(path, `its choices make more than ${MAX_ALTERNATIVES} alternatives`);
      }
      found = found.flatMap((one) => others.map((other) => mergeSchemas(one, other, merging)));
      const possible = found.filter((one) => one !== false);
      found = possible.length === 0 ? [false] : possible;
    };
    for (const part of this.#parts(said, path, references)) and(part);
    return withUnevaluated(found, said);
  }

  /** What the keywords that combine schemas make of them: lists of alternatives, all of which a value must fulfil. */
  *#parts(said: SchemaObject, path: string, references: number): Iterable<Schema[]> {
    const of = (schema: JsonValue, at: string) => this.alternatives(schema, at, references + 1);
    const choice = (branches: readonly JsonValue[], at: string) =>
      branches.flatMap((branch, i) => of(branch, `${at}/${i}`));
    const { $ref, allOf, anyOf, oneOf, const: only } = said;
    if (only !== undefined) yield [{ enum: [only] }];
    if ($ref !== undefined) {
      const target = this.#faults.attempt(
        () => this.target($ref as string, path),
        () => true,
      );
      yield of(target, $ref as string);
    }
    for (const [i, part] of listed(allOf).entries()) yield of(part, `${path}/allOf/${i}`);
    if (anyOf !== undefined) yield choice(anyOf as JsonValue[], `${path}/anyOf`);
    if (oneOf !== undefined)
      yield choice(this.#exclusive(oneOf as JsonValue[], path, references), `${path}/oneOf`);
    for (const { keyword, branches } of this.#conditions(said, path, references))
      yield choice(branches, `${path}/${keyword}`);
  }

  /** Keywords that say what must hold under a condition, or must not hold, as choices. */
  *#conditions(
    said: SchemaObject,
    path: string,
    references: number,
  ): Iterable<{ keyword: string; branches: JsonValue[] }> {
    if (said.not !== undefined && !(said.type === 'string' && isOfTexts(said.not)))
      yield { keyword: 'not', branches: [this.#negated(said.not, 'not', path, references) ?? true] };
    if (said.if !== undefined && (said.then !== undefined || said.else !== undefined)) {
      const opposite = this.#negated(said.if, 'if', path, references);
      if (opposite !== null)
        yield { keyword: 'if', branches: [both(said.if, said.then), both(opposite, said.else)] };
    }
    for (const keyword of ['dependentRequired', 'dependentSchemas', 'dependencies'])
      for (const [name, needs] of Object.entries((said[keyword] ?? {}) as SchemaObject)) {
        const present: JsonValue = { type: 'object', required: [name] };
        const needed: JsonValue = Array.isArray(needs) ? { required: needs } : needs;
        yield { keyword, branches: [{ properties: { [name]: false } }, both(present, needed)] };
      }
  }

  /** A schema of the values that do not fulfil another; null where that cannot be followed and is left out. */
  #negated(schema: JsonValue, of: 'not' | 'if', path: string, references: number): JsonValue | null {
    return this.#faults.attempt(
      () => negated(schema, this.#negating(of, path, references)),
      () => null,
    );
  }

  #negating(of: Negating['of'], path: string, references: number): Negating {
    return {
      path,
      of,
      isExact: of === 'oneOf',
      references: MAX_REFERENCES - references,
      checked: (one) => checkedKeywords(one, path, this.#faults) as JsonValue,
      target: (reference) => this.target(reference, path),
    };
  }

  /** Keywords of a schema itself, in the form of the latest draft. */
  #ownKeywords(said: SchemaObject, path: string): SchemaObject {
    const own = Object.entries(said).filter(
      ([keyword]) => keyword !== 'const' && !COMBINING.includes(keyword),
    );
    const kept: { [keyword: string]: JsonValue } = Object.fromEntries(own);
    if (said.not !== undefined && said.type === 'string' && isOfTexts(said.not)) kept.not = [said.not];
    if (Array.isArray(kept.items)) {
      if (kept.prefixItems !== undefined) throw fault(path, 'items and prefixItems are both lists');
      kept.prefixItems = kept.items;
      delete kept.items;
      if (said.additionalItems !== undefined) kept.items = said.additionalItems;
    }
    if (isObject(kept.patternProperties)) {
      const followed = Object.entries(kept.patternProperties).filter(([pattern]) =>
        this.#canFollow(pattern, path),
      );
      kept.patternProperties = Object.fromEntries(followed);
    }
    if (typeof kept.pattern === 'string' && !this.#canFollow(kept.pattern, path)) delete kept.pattern;
    return kept;
  }

  #canFollow(pattern: string, path: string): boolean {
    return this.#faults.attempt(
      () => {
        try {
          this.patterns.texts(pattern);
        } catch (error) {
          if (!isRefusal(error)) throw error;
          throw fault(path, asClause(error.message));
        }
        return true;
      },
      () => false,
    );
  }

  /** Branches of a oneOf, of which no two hold for the same value. */
  #exclusive(branches: readonly JsonValue[], path: string, references: number): JsonValue[] {
    spend(branches.length);
    const found = branches.map((branch, i) =>
      this.alternatives(branch, `${path}/oneOf/${i}`, references + 1),
    );
    const clashes = overlaps(found);
    if (clashes.length === 0) return [...branches];
    const name = commonDiscriminator(found);
    if (name !== null) return branches.map((branch) => both(branch, { required: [name] }));
    return this.#faults.attempt(
      () => this.#withoutOverlaps(branches, clashes, path, references),
      () => [...branches],
    );
  }

  /** Branches of which each leaves out the values of those with which it clashes. */
  #withoutOverlaps(
    branches: readonly JsonValue[],
    clashes: readonly [number, number][],
    path: string,
    references: number,
  ): JsonValue[] {
    const negating = this.#negating('oneOf', path, references);
    try {
      return branches.map((branch, i) => {
        const others = clashes.flatMap(([a, b]) => (a === i ? [b] : b === i ? [a] : []));
        const opposites = others.map((other) => negated(branches[other]!, negating));
        return opposites.length === 0 ? branch : { allOf: [branch, ...opposites] };
      });
    } catch (error) {
      if (!isRefusal(error)) throw error;
      throw fault(
        path,
        'two branches of oneOf could hold for the same value, as far as can be told from their types, constants and properties with constants; use anyOf',
      );
    }
  }
}

/** True for what is wrong with a schema, as opposed to a limit of all work. */
function isRefusal(error: unknown): error is GuideError {
  return error instanceof GuideError && error.code === 'SKEIN_GUIDE';
}

function both(a: JsonValue, b: JsonValue | undefined): JsonValue {
  return b === undefined || b === true ? a : { allOf: [a, b] };
}

/** Schemas of the values that no part of a schema speaks of, as those of additional ones. */
function withUnevaluated(found: readonly Schema[], said: SchemaObject): Schema[] {
  const { unevaluatedProperties: properties, unevaluatedItems: items } = said;
  if (properties === undefined && items === undefined) return [...found];
  return found.map((schema) => {
    if (typeof schema === 'boolean') return schema;
    const whole: { [keyword: string]: JsonValue } = { ...schema };
    if (properties !== undefined) whole.additionalProperties ??= properties;
    if (items !== undefined) whole.items ??= items;
    return whole;
  });
}

/** All schemas within a schema that have a name of their own. */
function namedSchemas(root: JsonValue): Map<string, JsonValue> {
  const named = new Map<string, JsonValue>();
  const open = [root];
  while (open.length > 0) {
    spend(1);
    const one = open.pop()!;
    if (typeof one !== 'object' || one === null) continue;
    if (isObject(one)) {
      if (typeof one.$id === 'string') named.set(one.$id, one);
      if (typeof one.$anchor === 'string') named.set(`#${one.$anchor}`, one);
    }
    for (const inner of Object.values(one)) open.push(inner);
  }
  return named;
}
