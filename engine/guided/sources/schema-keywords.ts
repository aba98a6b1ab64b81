import { closestName } from '../../../base/did-you-mean.js';
import { spend } from '../reading-work.js';
import { fault, type SchemaFaults } from './schema-faults.js';

export type JsonValue = null | boolean | number | string | JsonValue[] | { [key: string]: JsonValue };
export type SchemaObject = { readonly [keyword: string]: JsonValue };
/** true: any value; false: none. */
export type Schema = boolean | SchemaObject;

export const TYPES = ['string', 'number', 'integer', 'boolean', 'null', 'object', 'array'] as const;
export type TypeName = (typeof TYPES)[number];

/** Keywords that do not restrict a value. */
const ANNOTATIONS = new Set(
  `title description default examples example deprecated readOnly writeOnly $schema $id $comment $defs definitions $anchor
   $dynamicAnchor $vocabulary discriminator contentMediaType contentEncoding contentSchema`.split(/\s+/),
);
/** Keywords that apply to values of one type only, by that type. */
export const KEYWORDS_OF: Readonly<
  Record<Exclude<TypeName, 'boolean' | 'null' | 'integer'>, readonly string[]>
> = {
  string: ['minLength', 'maxLength', 'pattern', 'format'],
  number: ['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf'],
  object: [
    'properties',
    'required',
    'additionalProperties',
    'patternProperties',
    'propertyNames',
    'minProperties',
    'maxProperties',
  ],
  array: [
    'items',
    'prefixItems',
    'minItems',
    'maxItems',
    'uniqueItems',
    'contains',
    'minContains',
    'maxContains',
  ],
};
/** Keywords that combine schemas, or that others stand for: SchemaResolver resolves them. */
export const COMBINING = [
  ...[
    '$ref',
    'anyOf',
    'oneOf',
    'allOf',
    'not',
    'if',
    'then',
    'else',
    'dependentRequired',
    'dependentSchemas',
  ],
  ...['dependencies', 'unevaluatedProperties', 'unevaluatedItems', 'additionalItems'],
];
const KNOWN = ['type', 'enum', 'const', ...COMBINING, ...Object.values(KEYWORDS_OF).flat()];
/** Keywords of JSON Schema that cannot be followed. */
const REFUSED = ['$dynamicRef', '$recursiveRef', '$recursiveAnchor'];

/** Steps that checking a keyword costs. */
const KEYWORD_WORK = 4;

export function isObject(value: unknown): value is { [key: string]: JsonValue } {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * The keywords of a schema that restrict values, with the form of each checked. @throws GuideError naming keyword and place
 */
export function checkedKeywords(schema: JsonValue, path: string, faults: SchemaFaults): Schema {
  if (typeof schema === 'boolean') return schema;
  if (!isObject(schema)) throw fault(path, `a schema is an object or a boolean, found ${shown(schema)}`);
  const said: { [keyword: string]: JsonValue } = {};
  for (const [keyword, value] of Object.entries(schema)) {
    spend(KEYWORD_WORK);
    if (ANNOTATIONS.has(keyword) || keyword.startsWith('x-')) continue;
    if (KNOWN.includes(keyword)) {
      checkForm(keyword, value, path);
      if (!restrictsNothing(keyword, value)) said[keyword] = value;
    } else faults.unsupported(path, whyUnknown(keyword));
  }
  return said;
}

/** True for keywords that hold for every value, as generators of schemas write them. */
function restrictsNothing(keyword: string, value: JsonValue): boolean {
  switch (keyword) {
    case 'uniqueItems':
      return value === false;
    case 'patternProperties':
    case 'dependentRequired':
    case 'dependentSchemas':
    case 'dependencies':
      return Object.keys(value as object).length === 0;
    case 'propertyNames': {
      if (!isObject(value)) return value === true;
      return Object.keys(value).every(
        (name) => ANNOTATIONS.has(name) || (name === 'type' && value[name] === 'string'),
      );
    }
    case 'not':
      return value === false;
    default:
      return false;
  }
}

/** True for keywords that JSON Schema defines, followed or not. */
export function isSchemaKeyword(keyword: string): boolean {
  return (
    ANNOTATIONS.has(keyword) ||
    keyword.startsWith('x-') ||
    KNOWN.includes(keyword) ||
    REFUSED.includes(keyword)
  );
}

function whyUnknown(keyword: string): string {
  if (REFUSED.includes(keyword)) return `the keyword ${keyword} is not supported`;
  const meant = closestName(keyword, KNOWN);
  return `the keyword ${keyword.slice(0, 64)} is not known${meant === null ? '' : `; ${meant} is`}`;
}

const isCount = (value: JsonValue) => Number.isSafeInteger(value) && (value as number) >= 0;
const isNumber = (value: JsonValue) => Number.isFinite(value);
const isSchema = (value: JsonValue) => typeof value === 'boolean' || isObject(value);
const isText = (value: JsonValue) => typeof value === 'string';
const isFilled = (value: JsonValue) => Array.isArray(value) && value.length > 0;
const isType = (value: JsonValue) => TYPES.includes(value as TypeName);

const isListOfNames = (value: JsonValue) => Array.isArray(value) && value.every(isText);

/** False for a value with a number beyond those of a double, such as 1e400: no answer could have it. */
function holdsFinite(value: JsonValue): boolean {
  const open = [value];
  while (open.length > 0) {
    const one = open.pop()!;
    if (typeof one === 'number' && !Number.isFinite(one)) return false;
    if (typeof one === 'object' && one !== null) for (const inner of Object.values(one)) open.push(inner);
  }
  return true;
}

type Form = [string, (value: JsonValue) => boolean];
const A_SCHEMA: Form = ['a schema', isSchema];
const FORMS: Readonly<Record<string, Form>> = {
  ...Object.fromEntries(
    `not if then else contains propertyNames additionalProperties unevaluatedProperties unevaluatedItems additionalItems`
      .split(' ')
      .map((keyword) => [keyword, A_SCHEMA]),
  ),
  type: [
    `one of ${TYPES.join(', ')} or a list of these`,
    (value) => isType(value) || (isFilled(value) && (value as JsonValue[]).every(isType)),
  ],
  enum: [
    'a list with at least one value, whose numbers are finite',
    (value) => isFilled(value) && holdsFinite(value),
  ],
  const: ['a value whose numbers are finite', holdsFinite],
  anyOf: ['a list with at least one schema', isFilled],
  oneOf: ['a list with at least one schema', isFilled],
  allOf: ['a list with at least one schema', isFilled],
  $ref: ['a text', isText],
  minLength: ['a whole number from 0 up', isCount],
  maxLength: ['a whole number from 0 up', isCount],
  minItems: ['a whole number from 0 up', isCount],
  maxItems: ['a whole number from 0 up', isCount],
  minProperties: ['a whole number from 0 up', isCount],
  maxProperties: ['a whole number from 0 up', isCount],
  pattern: ['a text', isText],
  format: ['a text', isText],
  minimum: ['a number', isNumber],
  maximum: ['a number', isNumber],
  exclusiveMinimum: ['a number', isNumber],
  exclusiveMaximum: ['a number', isNumber],
  multipleOf: ['a number above 0', (value) => isNumber(value) && (value as number) > 0],
  properties: ['an object of schemas', isObject],
  minContains: ['a whole number from 0 up', isCount],
  maxContains: ['a whole number from 0 up', isCount],
  patternProperties: ['an object of schemas', isObject],
  dependentSchemas: ['an object of schemas', isObject],
  dependentRequired: [
    'an object of lists of names',
    (value) => isObject(value) && Object.values(value).every(isListOfNames),
  ],
  dependencies: [
    'an object of schemas and lists of names',
    (value) => isObject(value) && Object.values(value).every((one) => isSchema(one) || isListOfNames(one)),
  ],
  required: ['a list of names', isListOfNames],
  items: ['a schema or a list of schemas', (value) => isSchema(value) || Array.isArray(value)],
  prefixItems: ['a list of schemas', Array.isArray],
  uniqueItems: ['true or false', (value) => typeof value === 'boolean'],
};

function checkForm(keyword: string, value: JsonValue, path: string): void {
  const form = FORMS[keyword];
  if (form === undefined || form[1](value)) return;
  throw fault(path, `${keyword} is ${shown(value)}; ${form[0]} is expected`);
}

/** Numbers that JSON cannot write are reported by their names. */
const writtenNumber = (_: string, value: unknown) =>
  typeof value === 'number' && !Number.isFinite(value) ? String(value) : value;

export function shown(value: JsonValue): string {
  const text = JSON.stringify(value, writtenNumber) ?? String(value);
  return text.length > 60 ? `${text.slice(0, 57)}...` : text;
}

export function isOfType(value: JsonValue, type: TypeName): boolean {
  if (type === 'null') return value === null;
  if (type === 'array') return Array.isArray(value);
  if (type === 'object') return isObject(value);
  if (type === 'integer') return Number.isInteger(value);
  const kind: string = typeof value;
  return kind === type;
}
