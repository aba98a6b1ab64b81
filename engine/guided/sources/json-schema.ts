import { alt, type Expr, type Grammar, NOTHING, rule, text } from '../grammar.js';
import { spend } from '../reading-work.js';
import { gemma4Notation } from './gemma4-text.js';
import { boundedNumber, whyNoMultiple } from './json-numbers.js';
import { JSON_INTEGER, JSON_NOTATION, JSON_NUMBER } from './json-text.js';
import type { Notation } from './notation.js';
import { SchemaArrays } from './schema-arrays.js';
import { fault, SchemaFaults } from './schema-faults.js';
import {
  type JsonValue,
  KEYWORDS_OF,
  type Schema,
  type SchemaObject,
  shown,
  TYPES,
  type TypeName,
} from './schema-keywords.js';
import { listed } from './schema-merge.js';
import { SchemaObjects } from './schema-objects.js';
import { SchemaResolver } from './schema-resolver.js';
import type { SchemaRules } from './schema-rules.js';
import { SchemaStrings } from './schema-strings.js';
import { SchemaValues } from './schema-values.js';

/** Most schemas within a schema, each counted as often as it is written out. */
const MAX_SCHEMAS = 20_000;
/** Steps that a schema costs, in addition to its parts. */
const SCHEMA_WORK = 20;
/** Deepest nesting of schemas; a $ref begins to count again. */
const MAX_DEPTH = 200;

export interface SchemaOptions {
  /** Keeps the schema's rules apart from those of other schemas in one grammar. */
  prefix?: string;
  /** Notation of an object: {"a": 1} or, for the outermost one only, a=1. */
  style?: 'json' | 'keyword_arguments' | 'gemma4';
  /** With gemma4: true where the quotes of texts are a special token. */
  hasSpecialQuotes?: boolean;
  /** False: what cannot be followed is left out. */
  isStrict?: boolean;
}

/**
 * Grammar of the JSON texts that fulfil a schema: properties in the schema's order, at most a space or a line break with an
 * indent where JSON allows white space. It does not match every valid text (additional properties only if the schema asks
 * for them, numbers of at most 15 digits), but never an invalid one, unless a part of the schema is left out.
 *
 * @throws GuideError naming keyword and place
 */
export function jsonSchemaGrammar(
  schema: JsonValue,
  { prefix = 'schema', style = 'json', hasSpecialQuotes = false, isStrict = true }: SchemaOptions = {},
): Grammar {
  const faults = new SchemaFaults(isStrict);
  const notation = style === 'gemma4' ? gemma4Notation(hasSpecialQuotes) : JSON_NOTATION;
  const reader = new SchemaReader(schema, prefix, { faults, notation });
  const root = style === 'keyword_arguments' ? reader.readKeywordArguments() : reader.read();
  const rules = new Map([...notation.rules(), ...reader.rules, ['root', root] as const]);
  return { rules, root: 'root', leftOut: [...faults.leftOut] };
}

class SchemaReader implements SchemaRules {
  readonly rules = new Map<string, Expr>();
  readonly resolver: SchemaResolver;
  readonly values: SchemaValues;
  readonly faults: SchemaFaults;
  readonly notation: Notation;
  readonly #strings: SchemaStrings;
  readonly #objects: SchemaObjects;
  readonly #arrays: SchemaArrays;
  readonly #prefix: string;
  readonly #root: JsonValue;
  #numSchemas = 0;
  #numNames = 0;
  #depth = 0;
  #openReferences = 0;
  /** Names of the rules for keys, such as combined schemas. */
  readonly #composed = new Map<string, string>();

  constructor(
    root: JsonValue,
    prefix: string,
    { faults, notation }: { faults: SchemaFaults; notation: Notation },
  ) {
    this.#root = root;
    this.#prefix = prefix;
    this.faults = faults;
    this.notation = notation;
    this.resolver = new SchemaResolver(root, faults);
    this.values = new SchemaValues(this.resolver);
    this.#strings = new SchemaStrings(this);
    this.#objects = new SchemaObjects(this, this.#strings);
    this.#arrays = new SchemaArrays(this);
  }

  read(): Expr {
    return this.value(this.#root, '');
  }

  /** Writes the members of an object as keyword arguments of a Python call, with their values as JSON. */
  readKeywordArguments(): Expr {
    return alt(...this.resolver.alternatives(this.#root, '').map((schema) => this.#arguments(schema)));
  }

  #arguments(schema: Schema): Expr {
    if (typeof schema === 'boolean' || schema.type !== 'object')
      throw fault('', 'for keyword arguments an object is expected');
    const { patternProperties, additionalProperties, ...named } = schema;
    if (
      patternProperties !== undefined ||
      (additionalProperties !== undefined && additionalProperties !== false)
    )
      this.faults.unsupported(
        '',
        'additionalProperties and patternProperties are not supported in keyword arguments',
      );
    const odd = Object.keys(schema.properties ?? {}).find((name) => !/^[A-Za-z_]\w*$/.test(name));
    if (odd !== undefined) throw fault('', `the property ${shown(odd)} cannot be the name of an argument`);
    return this.#objects.members({ ...named, additionalProperties: false }, '', (name) => text(`${name}=`));
  }

  newName(kind: string): string {
    return `${this.#prefix}-${kind}-${this.#numNames++}`;
  }

  add(name: string, expr: Expr): Expr {
    this.rules.set(name, expr);
    return rule(name);
  }

  /** Expression for a value of the schema at `path`. */
  value(given: JsonValue, path: string): Expr {
    spend(SCHEMA_WORK);
    if (++this.#numSchemas > MAX_SCHEMAS)
      throw fault(path, `there are more than ${MAX_SCHEMAS} schemas in it`);
    if (++this.#depth > MAX_DEPTH) throw fault(path, `schemas are nested deeper than ${MAX_DEPTH}`);
    const expr = this.#resolved(given, path);
    this.#depth--;
    return expr;
  }

  #resolved(given: JsonValue, path: string): Expr {
    const reference = this.resolver.pureReference(given, path);
    if (reference !== null) return this.#referenced(reference, path);
    const branches = this.resolver.pureBranches(given, path);
    if (branches !== null) return alt(...branches.map(({ schema, path }) => this.value(schema, path)));
    const alternatives = this.resolver.alternatives(given, path);
    const plain = () => alt(...alternatives.map((schema) => this.#plain(schema, path)));
    // A combination of several schemas may lead back to itself, like a reference.
    if (this.resolver.isPlain(given)) return plain();
    const key = JSON.stringify(alternatives);
    spend(key.length);
    return this.ruleFor(key, plain);
  }

  ruleFor(key: string, make: () => Expr): Expr {
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
      this.rules.set(name, this.value(this.resolver.target(reference, path), reference));
      this.#depth = depth;
      this.#openReferences--;
    }
    return rule(name);
  }

  /** Expression for a schema without references and choices. */
  #plain(schema: Schema, path: string): Expr {
    if (typeof schema === 'boolean') return schema ? this.notation.value : NOTHING;
    if (schema.enum !== undefined) {
      const fitting = (schema.enum as JsonValue[]).filter((value) =>
        this.values.fitsPlain(value, schema, path),
      );
      const reasons = fitting.map((value) => this.notation.whyUnwritable(value));
      // Those that cannot be written are left out, unless no other is left.
      if (fitting.length > 0 && !reasons.includes(null)) throw fault(path, reasons[0]!);
      return alt(
        ...fitting.filter((_, i) => reasons[i] === null).map((value) => this.notation.literal(value)),
      );
    }
    const types = typesOf(schema);
    if (types.length === TYPES.length) return this.notation.value;
    return alt(...types.map((type) => this.#ofType(type, schema, path)));
  }

  #ofType(type: TypeName, schema: SchemaObject, path: string): Expr {
    switch (type) {
      case 'string':
        return this.#strings.expr(schema, path);
      case 'number':
      case 'integer':
        return this.#number(schema, type === 'integer', path);
      case 'boolean':
        return alt(text('true'), text('false'));
      case 'null':
        return text('null');
      case 'object':
        return this.#objects.expr(schema, path);
      case 'array':
        return this.#arrays.expr(schema, path);
    }
  }

  #number(schema: SchemaObject, isInteger: boolean, path: string): Expr {
    const given = KEYWORDS_OF.number.filter((keyword) => schema[keyword] !== undefined);
    const bounds = Object.fromEntries(given.map((keyword) => [keyword, schema[keyword] as number]));
    const why = bounds.multipleOf === undefined ? null : whyNoMultiple(bounds.multipleOf);
    if (why !== null) {
      this.faults.unsupported(path, why);
      delete bounds.multipleOf;
    }
    const unbounded = isInteger ? JSON_INTEGER : JSON_NUMBER;
    if (Object.keys(bounds).length === 0) return unbounded;
    return this.faults.attempt(
      () => boundedNumber(bounds, isInteger, this.newName('number'), (name, expr) => this.add(name, expr)),
      () => unbounded,
    );
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
