import {
  alt,
  EMPTY,
  type Expr,
  type Grammar,
  NOTHING,
  optional,
  repeat,
  rule,
  seq,
  text,
} from '../grammar.js';
import { spend } from '../reading-work.js';
import { boundedNumber, MAX_MULTIPLE } from './json-numbers.js';
import {
  asJsonString,
  JSON_CHARACTER,
  JSON_INTEGER,
  JSON_NUMBER,
  JSON_OBJECT,
  JSON_STRING,
  JSON_VALUE,
  jsonRules,
  keyBesides,
  literal,
  WS,
} from './json-text.js';
import { MAX_REPETITION, regexExpr } from './regex.js';
import {
  checkedKeywords,
  fault,
  isOfType,
  type JsonValue,
  KEYWORDS_OF,
  type Schema,
  type SchemaObject,
  shown,
  TYPES,
  type TypeName,
} from './schema-keywords.js';
import { listed } from './schema-merge.js';
import { SchemaResolver } from './schema-resolver.js';
import { STRING_FORMATS } from './string-formats.js';

/** Most schemas within a schema, each counted as often as it is written out. */
const MAX_SCHEMAS = 20_000;
/** Steps that a schema costs, in addition to its parts. */
const SCHEMA_WORK = 20;
/** Deepest nesting of schemas; a $ref begins to count anew. */
const MAX_DEPTH = 200;

/** Notation of an object: {"a": 1} or, for the outermost one only, a=1. */
export type ObjectStyle = 'json' | 'keyword_arguments';

/**
 * Grammar of the JSON texts that fulfil a schema: properties in the schema's order, at most a space or a line break with an
 * indent where JSON allows white space. It does not match every valid text (additional properties only if the schema asks
 * for them, numbers of at most 15 digits), but never an invalid one.
 *
 * `prefix` keeps its rules apart from those of other schemas in one grammar. @throws GuideError naming keyword and place
 */
export function jsonSchemaGrammar(
  schema: JsonValue,
  prefix = 'schema',
  style: ObjectStyle = 'json',
): Grammar {
  const reader = new SchemaReader(schema, prefix);
  const root = style === 'json' ? reader.read() : reader.readKeywordArguments();
  return { rules: new Map([...jsonRules(), ...reader.rules, ['root', root]]), root: 'root' };
}

class SchemaReader {
  readonly rules = new Map<string, Expr>();
  readonly #prefix: string;
  readonly #resolver: SchemaResolver;
  readonly #root: JsonValue;
  #numSchemas = 0;
  #numNames = 0;
  #depth = 0;
  #openReferences = 0;
  /** Names of the rules for combined schemas, by the combined schema. */
  readonly #composed = new Map<string, string>();

  constructor(root: JsonValue, prefix: string) {
    this.#root = root;
    this.#prefix = prefix;
    this.#resolver = new SchemaResolver(root);
  }

  read(): Expr {
    return this.#value(this.#root, '');
  }

  /** Writes the members of an object as keyword arguments of a Python call, with their values as JSON. */
  readKeywordArguments(): Expr {
    const schema = checkedKeywords(this.#root, '');
    if (typeof schema === 'boolean' || schema.type !== 'object' || !this.#resolver.isPlain(schema)) {
      throw fault('', 'for keyword arguments an object without choices and references is expected');
    }
    const odd = Object.keys(schema.properties ?? {}).find((name) => !/^[A-Za-z_]\w*$/.test(name));
    if (odd !== undefined) throw fault('', `the property ${shown(odd)} cannot be the name of an argument`);
    if (schema.additionalProperties !== undefined && schema.additionalProperties !== false) {
      throw fault('', 'additionalProperties is not supported in keyword arguments');
    }
    return this.#memberList({ ...schema, additionalProperties: false }, '', (name) => text(`${name}=`));
  }

  /** Expression for a value of the schema at `path`. */
  #value(given: JsonValue, path: string): Expr {
    spend(SCHEMA_WORK);
    if (++this.#numSchemas > MAX_SCHEMAS)
      throw fault(path, `there are more than ${MAX_SCHEMAS} schemas in it`);
    if (++this.#depth > MAX_DEPTH) throw fault(path, `schemas are nested deeper than ${MAX_DEPTH}`);
    const expr = this.#resolved(given, path);
    this.#depth--;
    return expr;
  }

  #resolved(given: JsonValue, path: string): Expr {
    const reference = this.#resolver.pureReference(given, path);
    if (reference !== null) return this.#referenced(reference, path);
    const branches = this.#resolver.pureBranches(given, path);
    if (branches !== null) return alt(...branches.map(({ schema, path }) => this.#value(schema, path)));
    const alternatives = this.#resolver.alternatives(given, path);
    const plain = () => alt(...alternatives.map((schema) => this.#plain(schema, path)));
    // A combination of several schemas may lead back to itself, like a reference.
    if (this.#resolver.isPlain(given)) return plain();
    const key = JSON.stringify(alternatives);
    spend(key.length);
    return this.#ruleFor(key, plain);
  }

  #ruleFor(key: string, make: () => Expr): Expr {
    let name = this.#composed.get(key);
    if (name === undefined) {
      name = `${this.#prefix}-composed-${this.#composed.size}`;
      this.#composed.set(key, name);
      this.rules.set(name, NOTHING);
      this.rules.set(name, make());
    }
    return rule(name);
  }

  /** Makes a rule for each schema that is referred to, so that schemas may refer to themselves. */
  #referenced(reference: string, path: string): Expr {
    const name = `${this.#prefix}-ref-${reference}`;
    if (!this.rules.has(name)) {
      this.rules.set(name, NOTHING);
      const depth = this.#depth;
      // Nesting counts from each reference on, but the calls of this reader do not.
      if (++this.#openReferences > MAX_DEPTH)
        throw fault(path, `references are nested deeper than ${MAX_DEPTH}`);
      this.#depth = 0;
      this.rules.set(name, this.#value(this.#resolver.target(reference, path), reference));
      this.#depth = depth;
      this.#openReferences--;
    }
    return rule(name);
  }

  /** Expression for a schema without references and choices. */
  #plain(schema: Schema, path: string): Expr {
    if (typeof schema === 'boolean') return schema ? JSON_VALUE : NOTHING;
    const types = typesOf(schema);
    if (schema.enum !== undefined) {
      const others = Object.keys(schema).filter((keyword) => keyword !== 'enum' && keyword !== 'type');
      if (others.length > 0)
        throw fault(path, `enum or const together with ${others.join(', ')} is not supported`);
      const fitting = (schema.enum as JsonValue[]).filter(
        (value) => schema.type === undefined || types.some((type) => isOfType(value, type)),
      );
      spend(fitting.length);
      return alt(...fitting.map(literal));
    }
    if (types.length === TYPES.length) return JSON_VALUE;
    return alt(...types.map((type) => this.#ofType(type, schema, path)));
  }

  #ofType(type: TypeName, schema: SchemaObject, path: string): Expr {
    switch (type) {
      case 'string':
        return this.#string(schema, path);
      case 'number':
      case 'integer':
        return this.#number(schema, type === 'integer', path);
      case 'boolean':
        return alt(text('true'), text('false'));
      case 'null':
        return text('null');
      case 'object':
        return this.#object(schema, path);
      case 'array':
        return this.#array(schema, path);
    }
  }

  #string({ minLength, maxLength, pattern, format }: SchemaObject, path: string): Expr {
    const hasLength = minLength !== undefined || maxLength !== undefined;
    const kinds = [
      hasLength && 'minLength or maxLength',
      pattern !== undefined && 'pattern',
      format !== undefined && 'format',
    ].filter((kind) => kind !== false);
    if (kinds.length > 1) throw fault(path, `${kinds.join(' together with ')} is not supported`);
    // One rule serves all strings of a kind: an address alone takes some thousand states, and schemas have hundreds of
    // them.
    if (pattern !== undefined) {
      return this.#ruleFor(`pattern ${pattern}`, () =>
        asJsonString(regexExpr(pattern as string, { mode: 'search' })),
      );
    }
    if (format !== undefined) {
      const known = Object.hasOwn(STRING_FORMATS, format as string);
      if (!known) {
        const formats = Object.keys(STRING_FORMATS).join(', ');
        throw fault(path, `the format ${shown(format)} is not supported; ${formats} are`);
      }
      const expression = STRING_FORMATS[format as string]!;
      return this.#ruleFor(`format ${format}`, () => asJsonString(regexExpr(expression, { mode: 'full' })));
    }
    if (!hasLength) return JSON_STRING;
    const [least, most] = counts('Length', minLength, maxLength, path);
    return seq(text('"'), repeat(JSON_CHARACTER, least, most), text('"'));
  }

  #number(schema: SchemaObject, isInteger: boolean, path: string): Expr {
    const bounds = pick(schema, KEYWORDS_OF.number) as { [keyword: string]: number };
    if (Object.keys(bounds).length === 0) return isInteger ? JSON_INTEGER : JSON_NUMBER;
    const { multipleOf } = bounds;
    if (multipleOf !== undefined && (!Number.isInteger(multipleOf) || multipleOf > MAX_MULTIPLE)) {
      throw fault(path, `multipleOf is ${multipleOf}; whole numbers from 1 to ${MAX_MULTIPLE} are supported`);
    }
    const addRule = (name: string, expr: Expr) => {
      this.rules.set(name, expr);
      return rule(name);
    };
    const name = `${this.#prefix}-number-${this.#numNames++}`;
    return boundedNumber(bounds, isInteger || multipleOf !== undefined, name, addRule);
  }

  #object(schema: SchemaObject, path: string): Expr {
    if (KEYWORDS_OF.object.every((keyword) => schema[keyword] === undefined)) return JSON_OBJECT;
    const members = this.#memberList(schema, path, (name) => seq(literal(name), text(':'), WS));
    return seq(text('{'), members, text('}'));
  }

  /** Expression for the text between the braces. */
  #memberList(schema: SchemaObject, path: string, key: (name: string) => Expr): Expr {
    const given = (schema.properties ?? {}) as { [name: string]: JsonValue };
    const required = new Set((schema.required ?? []) as string[]);
    const additional = schema.additionalProperties;
    const names = new Set([...Object.keys(given), ...required]);
    // An object with named properties that does not mention additional ones has none.
    const others = additional ?? names.size === 0;
    const members = [...names].map((name) => {
      const value = Object.hasOwn(given, name) ? given[name]! : (additional ?? true);
      return {
        isRequired: required.has(name),
        expr: seq(key(name), this.#value(value, `${path}/properties/${name}`)),
      };
    });
    const other =
      others === false
        ? null
        : this.#otherRule(
            seq(keyBesides(names), text(':'), WS, this.#value(others, `${path}/additionalProperties`)),
          );
    checkNumberOfProperties(schema, names.size, required.size, other !== null, path);
    const most = (schema.maxProperties as number | undefined) ?? null;
    const least = Math.max(0, ((schema.minProperties as number | undefined) ?? 0) - required.size);
    return this.#members(members, other, least, most);
  }

  /**
   * Makes a rule, since it is used in several places: written out in each, nested additional properties would take
   * 3^depth.
   */
  #otherRule(other: Expr): Expr {
    const name = `${this.#prefix}-other-${this.#numNames++}`;
    this.rules.set(name, other);
    return rule(name);
  }

  /**
   * Members with commas between them, in their order; `first(i)` is what may follow if none was written yet, `rest(i)` if some
   * were:
   *
   *   first(i) = member i rest(i + 1) | first(i + 1) if i may be left out       rest(i) = , member i rest(i + 1) | ...
   */
  #members(
    members: readonly { isRequired: boolean; expr: Expr }[],
    other: Expr | null,
    leastOthers: number,
    most: number | null,
  ): Expr {
    const name = `${this.#prefix}-object-${this.#numNames++}`;
    const comma = seq(text(','), WS);
    const mostOthers = most === null ? null : Math.max(0, most - members.length);
    const othersAfter = other === null ? EMPTY : repeat(seq(comma, other), leastOthers, mostOthers);
    let rest: Expr = seq(othersAfter, WS);
    const more = mostOthers === null ? null : mostOthers - 1;
    const someOthers =
      other === null || mostOthers === 0
        ? NOTHING
        : seq(WS, other, repeat(seq(comma, other), Math.max(0, leastOthers - 1), more), WS);
    let first: Expr = leastOthers > 0 ? someOthers : alt(WS, someOthers);
    for (const [i, { isRequired, expr }] of [...members.entries()].reverse()) {
      this.rules.set(`${name}-member-${i}`, expr);
      this.rules.set(`${name}-rest-${i}`, rest);
      const member = rule(`${name}-member-${i}`);
      const behind = rule(`${name}-rest-${i}`);
      const begins = seq(WS, member, behind);
      first = isRequired ? begins : alt(begins, first);
      const follows = seq(comma, member);
      rest = seq(isRequired ? follows : optional(follows), behind);
    }
    return first;
  }

  #array(schema: SchemaObject, path: string): Expr {
    if (schema.uniqueItems === true) throw fault(path, 'the keyword uniqueItems is not supported');
    const isTuple = Array.isArray(schema.items);
    const prefixItems = (isTuple ? schema.items : (schema.prefixItems ?? [])) as JsonValue[];
    if (isTuple && schema.prefixItems !== undefined)
      throw fault(path, 'items and prefixItems are both lists');
    const items = isTuple ? undefined : schema.items;
    const [least, most] = counts('Items', schema.minItems, schema.maxItems, path);
    const first = prefixItems.map((item, i) => this.#value(item, `${path}/prefixItems/${i}`));
    // A tuple that does not mention further items has none, unless its minimum asks for them.
    const isClosed = items === false || (items === undefined && first.length > 0 && least <= first.length);
    const item = isClosed ? NOTHING : this.#itemRule(items ?? true, `${path}/items`);
    return seq(text('['), this.#items(first, item, least, most), text(']'));
  }

  /** Makes a rule for an item: repetitions are written out, and a call takes only one state. */
  #itemRule(items: JsonValue, path: string): Expr {
    const name = `${this.#prefix}-item-${this.#numNames++}`;
    this.rules.set(name, this.#value(items, path));
    return rule(name);
  }

  #items(first: readonly Expr[], item: Expr, least: number, most: number | null): Expr {
    const comma = seq(text(','), WS);
    const open = most === null ? null : Math.max(0, most - first.length);
    const tail = repeat(seq(comma, item), Math.max(0, least - first.length), open);
    if (first.length === 0) {
      const more = most === null ? null : most - 1;
      const some =
        most === 0 ? NOTHING : seq(WS, item, repeat(seq(comma, item), Math.max(0, least - 1), more), WS);
      return least > 0 ? some : alt(WS, some);
    }
    let rest: Expr = tail;
    for (let i = first.length - 1; i >= 1; i--) {
      const follows = seq(comma, first[i]!, rest);
      rest = most !== null && i >= most ? EMPTY : i < least ? follows : optional(follows);
    }
    const some = most === 0 ? NOTHING : seq(WS, first[0]!, rest, WS);
    return least > 0 ? some : alt(WS, some);
  }
}

/** Types of the schema's values: those that it names, else those that its keywords apply to, else all. */
function typesOf(schema: SchemaObject): TypeName[] {
  if (schema.type !== undefined) {
    const types = listed(schema.type) as TypeName[];
    return types.includes('number') ? types.filter((type) => type !== 'integer') : types;
  }
  const spoken = (Object.keys(KEYWORDS_OF) as (keyof typeof KEYWORDS_OF)[]).filter((type) =>
    KEYWORDS_OF[type].some((keyword) => schema[keyword] !== undefined),
  );
  return spoken.length === 0 ? [...TYPES] : spoken;
}

function counts(
  what: string,
  min: JsonValue | undefined,
  max: JsonValue | undefined,
  path: string,
): [number, number | null] {
  const [least, most] = [(min as number | undefined) ?? 0, (max as number | undefined) ?? null];
  for (const count of [least, most ?? 0]) {
    if (count > MAX_REPETITION)
      throw fault(path, `min${what} or max${what} is ${count}; at most ${MAX_REPETITION} is supported`);
  }
  if (most !== null && most < least)
    throw fault(path, `max${what} is ${most}, less than min${what}, ${least}`);
  return [least, most];
}

/**
 * Checks that the number of properties can be counted: of additional ones, and only if no named one can be left out.
 */
function checkNumberOfProperties(
  { minProperties: min, maxProperties: max }: SchemaObject,
  numNames: number,
  numRequired: number,
  isOpen: boolean,
  path: string,
): void {
  const [least, most] = counts('Properties', min, max, path);
  // Two additional properties could have the same name, and would then count once.
  if (least > numRequired + 1 || (least > numRequired && (numNames > numRequired || !isOpen))) {
    throw fault(
      path,
      `minProperties is ${least}; at most one more than the required properties is supported, and that only where no property is optional and additional ones are allowed`,
    );
  }
  if (most !== null && most < numNames) {
    throw fault(
      path,
      `maxProperties is ${most}, less than its ${numNames} properties, which is not supported`,
    );
  }
}

function pick(schema: SchemaObject, keywords: readonly string[]): { [keyword: string]: JsonValue } {
  const given = keywords.filter((keyword) => schema[keyword] !== undefined);
  return Object.fromEntries(given.map((keyword) => [keyword, schema[keyword]!]));
}
