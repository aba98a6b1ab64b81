import { spend } from '../reading-work.js';
import { isMultiple } from './decimals.js';
import {
  isObject,
  isOfType,
  type JsonValue,
  type Schema,
  type SchemaObject,
  type TypeName,
} from './schema-keywords.js';
import { canonical, listed } from './schema-merge.js';
import type { SchemaResolver } from './schema-resolver.js';

const VALUE_WORK = 10;
/** Most whole numbers between two bounds that are taken for a list of values. */
const MAX_INTEGERS = 64;

/**
 * Says whether values fulfil schemas, for the values that schemas list. `format` is not checked: the schema's
 * author chose the values.
 */
export class SchemaValues {
  readonly #resolver: SchemaResolver;

  constructor(resolver: SchemaResolver) {
    this.#resolver = resolver;
  }

  fits(value: JsonValue, schema: JsonValue, path: string): boolean {
    spend(VALUE_WORK);
    return this.#resolver.alternatives(schema, path).some((one) => this.fitsPlain(value, one, path));
  }

  /** As `fits`, for a schema without references and choices. */
  fitsPlain(value: JsonValue, schema: Schema, path: string): boolean {
    spend(VALUE_WORK);
    if (typeof schema === 'boolean') return schema;
    const types = listed(schema.type) as TypeName[];
    if (types.length > 0 && !types.some((type) => isOfType(value, type))) return false;
    if (schema.enum !== undefined) {
      const written = canonical(value);
      if (!(schema.enum as JsonValue[]).some((one) => canonical(one) === written)) return false;
    }
    if (typeof value === 'string') return this.#fitsText(value, schema, path);
    if (typeof value === 'number') return fitsNumber(value, schema);
    if (Array.isArray(value)) return this.#fitsList(value, schema, path);
    return !isObject(value) || this.#fitsObject(value, schema, path);
  }

  /** All values of a schema, where it lists them; null where it has others. */
  listOf(schema: JsonValue, path: string): JsonValue[] | null {
    const found = new Map<string, JsonValue>();
    for (const one of this.#resolver.alternatives(schema, path)) {
      const values = this.#listOfPlain(one, path);
      if (values === null) return null;
      for (const value of values) found.set(canonical(value), value);
    }
    return [...found.values()];
  }

  #listOfPlain(schema: Schema, path: string): JsonValue[] | null {
    if (typeof schema === 'boolean') return schema ? null : [];
    if (schema.enum !== undefined)
      return (schema.enum as JsonValue[]).filter((value) => this.fitsPlain(value, schema, path));
    const types = listed(schema.type) as TypeName[];
    if (types.length === 0) return null;
    const found: JsonValue[] = [];
    for (const type of types) {
      const values = type === 'boolean' ? [true, false] : type === 'null' ? [null] : integersOf(type, schema);
      if (values === null) return null;
      found.push(...values.filter((value) => this.fitsPlain(value, schema, path)));
    }
    return found;
  }

  #fitsText(value: string, { minLength, maxLength, pattern, not }: SchemaObject, path: string): boolean {
    const length = [...value].length;
    spend(length);
    if (minLength !== undefined && length < (minLength as number)) return false;
    if (maxLength !== undefined && length > (maxLength as number)) return false;
    if (!(listed(pattern) as string[]).every((one) => this.#resolver.patterns.matches(one, value)))
      return false;
    return !listed(not).some((one) => this.fits(value, one, path));
  }

  #fitsList(value: JsonValue[], schema: SchemaObject, path: string): boolean {
    const { minItems, maxItems, items, contains } = schema;
    if (minItems !== undefined && value.length < (minItems as number)) return false;
    if (maxItems !== undefined && value.length > (maxItems as number)) return false;
    if (schema.uniqueItems === true && new Set(value.map(canonical)).size < value.length) return false;
    const first = listed(schema.prefixItems);
    if (!value.every((item, i) => this.fits(item, first[i] ?? items ?? true, path))) return false;
    if (contains === undefined) return true;
    const count = value.filter((item) => this.fits(item, contains, path)).length;
    const { minContains = 1, maxContains = value.length } = schema;
    return count >= (minContains as number) && count <= (maxContains as number);
  }

  #fitsObject(value: { [key: string]: JsonValue }, schema: SchemaObject, path: string): boolean {
    const names = Object.keys(value);
    const { minProperties, maxProperties, propertyNames } = schema;
    if (minProperties !== undefined && names.length < (minProperties as number)) return false;
    if (maxProperties !== undefined && names.length > (maxProperties as number)) return false;
    if (!(listed(schema.required) as string[]).every((name) => Object.hasOwn(value, name))) return false;
    if (propertyNames !== undefined && !names.every((name) => this.fits(name, propertyNames, path)))
      return false;
    const properties = (schema.properties ?? {}) as SchemaObject;
    const { patterns } = this.#resolver;
    return names.every((name) => {
      const own = Object.hasOwn(properties, name)
        ? [properties[name]!, ...patterns.ofPatterns(schema, name)]
        : [patterns.schemaOfOther(schema, name) ?? true];
      return own.every((one) => this.fits(value[name]!, one, path));
    });
  }
}

function fitsNumber(value: number, schema: SchemaObject): boolean {
  const { minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf } = schema as {
    [keyword: string]: number;
  };
  return (
    (minimum === undefined || value >= minimum) &&
    (maximum === undefined || value <= maximum) &&
    (exclusiveMinimum === undefined || value > exclusiveMinimum) &&
    (exclusiveMaximum === undefined || value < exclusiveMaximum) &&
    (multipleOf === undefined || isMultiple(value, multipleOf))
  );
}

/** The few whole numbers between the bounds of a schema; null where there are many, or none are meant. */
function integersOf(type: TypeName, schema: SchemaObject): number[] | null {
  if (type !== 'integer') return null;
  const {
    minimum = -Infinity,
    maximum = Infinity,
    exclusiveMinimum = -Infinity,
    exclusiveMaximum = Infinity,
  } = schema as { [keyword: string]: number };
  const least = Math.ceil(Math.max(minimum, exclusiveMinimum));
  const most = Math.floor(Math.min(maximum, exclusiveMaximum));
  if (!(most - least < MAX_INTEGERS)) return null;
  return Array.from({ length: Math.max(0, most - least + 1) }, (_, i) => least + i);
}
