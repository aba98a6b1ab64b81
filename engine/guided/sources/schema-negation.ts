import { spend } from '../reading-work.js';
import { fault } from './schema-faults.js';
import { isObject, isOfType, type JsonValue, type SchemaObject, TYPES } from './schema-keywords.js';
import { listed } from './schema-merge.js';

/** Most numbers that a value must not be. */
const MAX_NUMBERS = 64;
const NEGATION_WORK = 20;

/** What a negation needs besides the schema. */
export interface Negating {
  readonly path: string;
  /** The keyword that negates. */
  readonly of: 'not' | 'if' | 'oneOf';
  /** The schema's keywords that restrict values. */
  checked(schema: JsonValue): JsonValue;
  target(reference: string): JsonValue;
  /** True where values that break the schema must all fulfil the negation; otherwise some may be missing. */
  readonly isExact: boolean;
  /** How many references it may still lead through. */
  readonly references: number;
}

const TEXT_KEYWORDS = ['type', 'enum', 'const', 'pattern', 'minLength', 'maxLength'];

/** True for a schema of texts whose negation is kept as it is: an automaton has a complement. */
export function isOfTexts(schema: JsonValue): boolean {
  return (
    isObject(schema) &&
    schema.type === 'string' &&
    Object.keys(schema).every((keyword) => TEXT_KEYWORDS.includes(keyword))
  );
}

/**
 * A schema of the values that do not fulfil another: those that break one of its keywords. @throws GuideError naming a keyword
 * whose negation cannot be followed
 */
export function negated(schema: JsonValue, negating: Negating): JsonValue {
  spend(NEGATION_WORK);
  const said = negating.checked(schema);
  if (!isObject(said)) return said !== true;
  if (negating.references < 0) throw fault(negating.path, 'a negation leads through too many references');
  const ways = Object.entries(said).flatMap(([keyword, value]) => broken(keyword, value, said, negating));
  return ways.length === 0 ? false : { anyOf: ways };
}

/** Schemas of the values that break a keyword. */
function broken(keyword: string, value: JsonValue, schema: SchemaObject, negating: Negating): JsonValue[] {
  switch (keyword) {
    case 'type':
      return brokenType(listed(value), negating);
    case 'enum':
      return notOneOf(value as JsonValue[], negating);
    case 'const':
      return notOneOf([value], negating);
    case '$ref': {
      const target = negating.target(value as string);
      return [negated(target, { ...negating, references: negating.references - 1 })];
    }
    case 'anyOf':
      return [{ allOf: (value as JsonValue[]).map((one) => negated(one, negating)) }];
    case 'allOf':
      return (value as JsonValue[]).map((one) => negated(one, negating));
    case 'not':
      return [value];
    case 'required':
      return (value as string[]).map((name) => ({ type: 'object', properties: { [name]: false } }));
    case 'properties':
      return Object.entries(value as SchemaObject).map(([name, one]) => ({
        type: 'object',
        required: [name],
        properties: { [name]: negated(one, negating) },
      }));
    case 'contains':
      if (schema.minContains === undefined && schema.maxContains === undefined)
        return [{ type: 'array', items: negated(value, negating) }];
      break;
    case 'items':
      if (schema.prefixItems === undefined && !Array.isArray(value))
        return [{ type: 'array', contains: negated(value, negating) }];
      break;
    case 'additionalProperties':
      if (value === true || (isObject(value) && Object.keys(value).length === 0)) return [];
      break;
    default: {
      const bound = brokenBound(keyword, value as number);
      if (bound !== null) return bound;
    }
  }
  throw fault(
    negating.path,
    `values that break the keyword ${keyword}, as ${negating.of} asks for, are not supported`,
  );
}

function brokenBound(keyword: string, bound: number): JsonValue[] | null {
  switch (keyword) {
    case 'pattern':
      return [{ type: 'string', not: { type: 'string', pattern: bound } }];
    case 'minLength':
      return bound === 0 ? [] : [{ type: 'string', maxLength: bound - 1 }];
    case 'maxLength':
      return [{ type: 'string', minLength: bound + 1 }];
    case 'minItems':
      return bound === 0 ? [] : [{ type: 'array', maxItems: bound - 1 }];
    case 'maxItems':
      return [{ type: 'array', minItems: bound + 1 }];
    case 'minProperties':
      return bound === 0 ? [] : [{ type: 'object', maxProperties: bound - 1 }];
    case 'maxProperties':
      return [{ type: 'object', minProperties: bound + 1 }];
    case 'minimum':
      return [{ type: 'number', exclusiveMaximum: bound }];
    case 'maximum':
      return [{ type: 'number', exclusiveMinimum: bound }];
    case 'exclusiveMinimum':
      return [{ type: 'number', maximum: bound }];
    case 'exclusiveMaximum':
      return [{ type: 'number', minimum: bound }];
    default:
      return null;
  }
}

function brokenType(types: JsonValue[], { isExact, path }: Negating): JsonValue[] {
  const takesIntegers = types.includes('integer') && !types.includes('number');
  if (takesIntegers && isExact) throw fault(path, 'numbers that are not integers cannot be followed');
  const others = TYPES.filter((type) => {
    if (type === 'integer') return false;
    return !types.includes(type) && !(type === 'number' && takesIntegers);
  });
  return others.length === 0 ? [] : [{ type: others }];
}

/** Schemas of all values except some. */
function notOneOf(values: JsonValue[], { path }: Negating): JsonValue[] {
  const of = (type: 'string' | 'boolean' | 'null' | 'number') =>
    values.filter((value) => isOfType(value, type));
  const [texts, booleans, numbers] = [of('string'), of('boolean'), of('number') as number[]];
  if (values.some((value) => typeof value === 'object' && value !== null))
    throw fault(path, 'objects and lists as values that are excluded are not supported');
  if (numbers.length > MAX_NUMBERS)
    throw fault(path, `${numbers.length} numbers are excluded; at most ${MAX_NUMBERS} are supported`);
  const text =
    texts.length === 0 ? { type: 'string' } : { type: 'string', not: { type: 'string', enum: texts } };
  const left = [true, false].filter((value) => !booleans.includes(value));
  return [
    text,
    { type: ['object', 'array', ...(of('null').length === 0 ? ['null'] : [])] },
    ...(left.length === 0 ? [] : [{ type: 'boolean', enum: left }]),
    ...between(numbers),
  ];
}

/** Numbers below the first, between each two and above the last. */
function between(numbers: number[]): JsonValue[] {
  const ascending = [...new Set(numbers)].sort((a, b) => a - b);
  if (ascending.length === 0) return [{ type: 'number' }];
  return [...ascending, null].map((above, i) => ({
    type: 'number',
    ...(i === 0 ? {} : { exclusiveMinimum: ascending[i - 1]! }),
    ...(above === null ? {} : { exclusiveMaximum: above }),
  }));
}
