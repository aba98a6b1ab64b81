import { alt, EMPTY, type Expr, NOTHING, optional, repeat, seq, text } from '../grammar.js';
import { spend } from '../reading-work.js';
import { TextTest } from '../texts/text-graph.js';
import { ANY_TEXT, allOf, complementOf, oneTextOf, type TextSet } from '../texts/text-set.js';
import { counts } from './schema-counts.js';
import { type JsonValue, KEYWORDS_OF, type SchemaObject } from './schema-keywords.js';
import { listed } from './schema-merge.js';
import type { SchemaRules } from './schema-rules.js';
import type { SchemaStrings } from './schema-strings.js';

/** Most patterns of names: a name may match some of them and not the others. */
const MAX_PATTERNS = 4;
/** Steps that a member takes for each number of properties before it. */
const COUNT_WORK = 20;

interface Member {
  isRequired: boolean;
  expr: Expr;
}

/** Bounds of the number of properties. */
interface Counted {
  least: number;
  most: number | null;
}

type KeyOf = (name: string) => Expr;

/** Expressions for objects: properties in the schema's order, and then others. */
export class SchemaObjects {
  readonly #rules: SchemaRules;
  readonly #strings: SchemaStrings;
  readonly #space: Expr;
  readonly #comma: Expr;

  constructor(rules: SchemaRules, strings: SchemaStrings) {
    this.#rules = rules;
    this.#strings = strings;
    this.#space = rules.notation.space;
    this.#comma = seq(text(','), this.#space);
  }

  expr(schema: SchemaObject, path: string): Expr {
    const { notation } = this.#rules;
    if (KEYWORDS_OF.object.every((keyword) => schema[keyword] === undefined)) return notation.object;
    const key: KeyOf = (name) => seq(notation.key(name), text(':'), notation.space);
    return seq(text('{'), this.members(schema, path, key), text('}'));
  }

  /** Expression for the text between the braces. */
  members(given: SchemaObject, path: string, key: KeyOf): Expr {
    const schema = this.#withListedNames(given, path);
    const properties = (schema.properties ?? {}) as SchemaObject;
    const required = new Set((schema.required ?? []) as string[]);
    const names = this.#ordered(new Set([...Object.keys(properties), ...required]));
    const allowed =
      schema.propertyNames === undefined ? null : this.#strings.names(schema.propertyNames, path);
    const test = allowed === null ? null : new TextTest(allowed);
    const members: Member[] = [];
    for (const name of names) {
      const value = test !== null && !test.has(name) ? false : this.#schemaOf(schema, name);
      const isRequired = required.has(name);
      if (value === false && !isRequired) continue;
      members.push({
        isRequired,
        expr: seq(key(name), this.#rules.value(value, `${path}/properties/${name}`)),
      });
    }
    const other = this.#others(schema, names, allowed, path);
    const counted = this.#counted(schema, members, other !== null, path);
    const written = this.#memberRules(members);
    if (counted === null) return this.#uncounted(written, other);
    return this.#countedMembers(written, other, counted);
  }

  #ordered(names: ReadonlySet<string>): ReadonlySet<string> {
    return this.#rules.notation.isSorted ? new Set([...names].sort(byName)) : names;
  }

  /** What the schema says of a property that it names or requires. */
  #schemaOf(schema: SchemaObject, name: string): JsonValue {
    const { patterns } = this.#rules.resolver;
    const properties = (schema.properties ?? {}) as SchemaObject;
    if (!Object.hasOwn(properties, name)) return patterns.schemaOfOther(schema, name) ?? true;
    const own = properties[name]!;
    const more = patterns.ofPatterns(schema, name);
    return more.length === 0 || own === false ? own : { allOf: [own, ...more] };
  }

  /** The schema with the names that `propertyNames` lists as properties, and no others. */
  #withListedNames(schema: SchemaObject, path: string): SchemaObject {
    if (schema.propertyNames === undefined) return schema;
    const listedNames = this.#rules.values.listOf(schema.propertyNames, path);
    if (listedNames === null) return schema;
    const { propertyNames: _, patternProperties: __, ...rest } = schema;
    const properties: { [name: string]: JsonValue } = Object.create(null);
    const isClosed = schema.additionalProperties === undefined && schema.properties !== undefined;
    const known = (schema.properties ?? {}) as SchemaObject;
    for (const name of listedNames) {
      if (typeof name !== 'string') continue;
      if (!Object.hasOwn(known, name) && isClosed && schema.patternProperties === undefined) continue;
      properties[name] = this.#schemaOf(schema, name);
    }
    const required = listed(schema.required) as string[];
    for (const name of required) if (!Object.hasOwn(properties, name)) properties[name] = false;
    return { ...rest, properties, additionalProperties: false };
  }

  /** A rule for a property that the schema does not name; null: there are none. */
  #others(
    schema: SchemaObject,
    names: ReadonlySet<string>,
    allowed: TextSet | null,
    path: string,
  ): Expr | null {
    const patterns = Object.entries((schema.patternProperties ?? {}) as SchemaObject);
    // An object with named properties, or patterns of names, that does not mention additional ones has none.
    const additional = schema.additionalProperties ?? (names.size === 0 && patterns.length === 0);
    if (patterns.length === 0) {
      if (additional === false) return null;
      const value = this.#rules.value(additional, `${path}/additionalProperties`);
      if (allowed === null) return this.#otherRule(this.#rules.notation.otherKey(names), value);
    }
    if (patterns.length > MAX_PATTERNS) {
      const what = `patternProperties has ${patterns.length} patterns; at most ${MAX_PATTERNS} are supported`;
      this.#rules.faults.unsupported(path, what);
      patterns.length = MAX_PATTERNS;
    }
    const ways: Expr[] = [];
    const free = [
      ...(allowed === null ? [] : [allowed]),
      ...(names.size === 0 ? [] : [complementOf(oneTextOf([...names]))]),
    ];
    for (let subset = 0; subset < 2 ** patterns.length; subset++) {
      const isIn = (i: number) => (subset & (1 << i)) !== 0;
      const schemas = patterns.filter((_, i) => isIn(i)).map(([, one]) => one);
      if (subset === 0 && additional === false) continue;
      const sets = patterns.map(([pattern], i) => {
        const texts = this.#rules.resolver.patterns.texts(pattern);
        return isIn(i) ? texts : complementOf(texts);
      });
      const value: JsonValue =
        subset === 0 ? additional : schemas.length === 1 ? schemas[0]! : { allOf: schemas };
      const one = this.#otherOf([...free, ...sets], value, path);
      if (one !== null) ways.push(one);
    }
    return ways.length === 0 ? null : alt(...ways);
  }

  /** A rule for properties with names of all these sets; null where there is none. */
  #otherOf(sets: readonly TextSet[], value: JsonValue, path: string): Expr | null {
    const key = this.#strings.nameExpr(sets.length === 0 ? ANY_TEXT : allOf(...sets));
    if (key === null) {
      const what =
        'propertyNames or patternProperties take too large an automaton together with the properties';
      this.#rules.faults.unsupported(path, what);
    }
    if (key === null || key === NOTHING) return null;
    return this.#otherRule(key, this.#rules.value(value, `${path}/additionalProperties`));
  }

  /**
   * Makes a rule, since it is used in several places: written out in each, nested additional properties would take
   * 3^depth.
   */
  #otherRule(key: Expr, value: Expr): Expr {
    return this.#rules.add(this.#rules.newName('other'), seq(key, text(':'), this.#space, value));
  }

  /** Bounds of the number of properties that have to be counted; null: none. */
  #counted(schema: SchemaObject, members: readonly Member[], isOpen: boolean, path: string): Counted | null {
    const { faults } = this.#rules;
    const [asked, most] = counts('Properties', schema.minProperties, schema.maxProperties, path, faults);
    const numRequired = members.filter(({ isRequired }) => isRequired).length;
    // Two additional properties could have the same name, and would then count once.
    const certain = members.length + (isOpen ? 1 : 0);
    let least = asked;
    if (least > certain && isOpen) {
      faults.unsupported(
        path,
        `minProperties is ${least}; at most one more than the number of named properties is supported`,
      );
      least = certain;
    }
    const isFree = least <= numRequired && (most === null || (!isOpen && members.length <= most));
    return isFree ? null : { least, most };
  }

  #memberRules(members: readonly Member[]): Member[] {
    const name = this.#rules.newName('object');
    return members.map(({ isRequired, expr }, i) => ({
      isRequired,
      expr: this.#rules.add(`${name}-member-${i}`, expr),
    }));
  }

  /**
   * Members with commas between them, in their order; `first(i)` is what may follow if none was written yet, `rest(i)` if some
   * were:
   *
   *   first(i) = member i rest(i + 1) | first(i + 1) if i may be left out       rest(i) = , member i rest(i + 1) | ...
   */
  #uncounted(members: readonly Member[], other: Expr | null): Expr {
    const name = this.#rules.newName('rest');
    const othersAfter = other === null ? EMPTY : repeat(seq(this.#comma, other), 0, null);
    let rest: Expr = seq(othersAfter, this.#space);
    let first: Expr =
      other === null ? this.#space : alt(this.#space, seq(this.#space, other, othersAfter, this.#space));
    for (const [i, { isRequired, expr }] of [...members.entries()].reverse()) {
      const behind = this.#rules.add(`${name}-${i}`, rest);
      const begins = seq(this.#space, expr, behind);
      first = isRequired ? begins : alt(begins, first);
      const follows = seq(this.#comma, expr);
      rest = seq(isRequired ? follows : optional(follows), behind);
    }
    return first;
  }

  /** As `uncounted`, with a rule for each member and number of properties before it, up to the greatest that matters. */
  #countedMembers(members: readonly Member[], other: Expr | null, { least, most }: Counted): Expr {
    const name = this.#rules.newName('counted');
    const cap = Math.max(1, most === null ? Math.min(least, members.length) : members.length);
    let behind = Array.from({ length: cap + 1 }, (_, count) => this.#othersFrom(count, other, least, most));
    for (const [i, { isRequired, expr }] of [...members.entries()].reverse()) {
      spend(COUNT_WORK * cap);
      const next = behind.map((one, count) => this.#rules.add(`${name}-${i}-${count}`, one));
      behind = next.map((skipped, count) => {
        const isFull = most !== null && count >= most;
        const taken = isFull
          ? NOTHING
          : seq(count === 0 ? this.#space : this.#comma, expr, next[Math.min(cap, count + 1)]!);
        return isRequired ? taken : alt(taken, skipped);
      });
    }
    return behind[0]!;
  }

  /** Additional properties after `count` others, and the white space at the end. */
  #othersFrom(count: number, other: Expr | null, least: number, most: number | null): Expr {
    const missing = least - count;
    if (missing > 1 || (missing === 1 && other === null) || (most !== null && count > most)) return NOTHING;
    if (other === null) return this.#space;
    const left = most === null ? null : most - count;
    if (left === 0) return missing > 0 ? NOTHING : this.#space;
    const more = repeat(seq(this.#comma, other), 0, left === null ? null : left - 1);
    const some = seq(count === 0 ? this.#space : this.#comma, other, more, this.#space);
    return missing === 1 ? some : alt(this.#space, some);
  }
}

/** Order of names as Jinja's dictsort has it. */
function byName(a: string, b: string): number {
  const [first, second] = [a.toLowerCase(), b.toLowerCase()];
  return first < second ? -1 : first > second ? 1 : 0;
}
