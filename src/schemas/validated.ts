import type * as z from 'zod';
import { InvalidRequestError } from '../errors/request-errors.js';
import { type UnknownFieldRule, unknownField, unknownFieldsOf } from './field-rules.js';
import type { UnknownFields } from './unknown-fields.js';

/** Text of a path: `messages[0].content` of ['messages', 0, 'content']. */
function paramName(path: readonly PropertyKey[]): string | null {
  if (path.length === 0) return null;
  return path.reduce<string>(
    (name, key) =>
      typeof key === 'number' ? `${name}[${key}]` : name === '' ? String(key) : `${name}.${String(key)}`,
    '',
  );
}

/**
 * The unknown fields of a body, as unknownFieldsOf finds them. @throws InvalidRequestError
 */
export function unknownFieldsIn(schema: z.ZodObject, body: object, rule: UnknownFieldRule): UnknownFields {
  try {
    return unknownFieldsOf(schema, body, rule);
  } catch (error) {
    if (error instanceof InvalidRequestError && error.apiCode === 'unknown_parameter')
      checkTypeAround(schema, body, error);
    throw error;
  }
}

/**
 * Refuses the object around an unknown field for its `type` or `role`, where these are at fault: what fields it may have
 * depends on them.
 */
function checkTypeAround(schema: z.ZodObject, body: object, { param }: InvalidRequestError): void {
  const around = param?.slice(0, param.lastIndexOf('.'));
  try {
    validated(schema, body);
  } catch (error) {
    const names = [around, `${around}.type`, `${around}.role`];
    if (error instanceof InvalidRequestError && error.param !== null && names.includes(error.param))
      throw error;
  }
}

/** Validates a body. @throws InvalidRequestError that names the field, the expected value and the alternatives. */
export function validated<T extends z.ZodObject>(schema: T, body: object): z.output<T> {
  const known = Object.keys(schema.shape);
  // A schema that takes no other fields gathers them all before it ends.
  if (schema.def.catchall !== undefined) checkNames(body, known);
  // One complaint is enough: the validator would gather one for each of a hundred thousand values.
  const parsed = schema.safeParse(body, { abortEarly: true } as z.core.ParseContext<z.core.$ZodIssue>);
  if (parsed.success) return parsed.data;
  throw issueError(deepest(parsed.error.issues[0]!), known);
}

/**
 * Refuses a body with more fields than exist by the name of an unknown one, before the validator gathers all of them.
 */
function checkNames(body: object, known: readonly string[]): void {
  const names = Object.keys(body);
  if (names.length <= known.length) return;
  const expected = new Set(known);
  const name = names.find((one) => !expected.has(one))!;
  throw unknownField(name, name, known);
}

/**
 * Fault of a value with several allowed forms, reported for the form that the value resembles most: one with
 * the same `type`. Otherwise the fault is that the value has none of the forms.
 */
function deepest(issue: z.core.$ZodIssue): z.core.$ZodIssue {
  if (issue.code !== 'invalid_union') return issue;
  const firsts = issue.errors.flatMap(([first]) => (first === undefined ? [] : [deepest(first)]));
  const missing = firsts.find(({ path, message }) => path.length === 0 && isMissing(message));
  if (missing !== undefined) return { ...missing, path: issue.path };
  const within = firsts.filter(({ path }) => path.length > 0);
  const ofItsType = within.filter(({ path }) => path.at(-1) !== 'type');
  const [best] = (ofItsType.length > 0 ? ofItsType : within).toSorted(
    (a, b) => b.path.length - a.path.length || reached(b) - reached(a),
  );
  return best === undefined ? issue : { ...best, path: [...issue.path, ...best.path] };
}

/** Index in a list that the validator reached before the fault. */
function reached({ path }: z.core.$ZodIssue): number {
  return typeof path[0] === 'number' ? path[0] : 0;
}

function isMissing(message: string): boolean {
  return message.endsWith('received undefined');
}

function issueError(issue: z.core.$ZodIssue, known: readonly string[]): InvalidRequestError {
  const param = paramName(issue.path);
  if (issue.code === 'unrecognized_keys') {
    const [key] = issue.keys as [string];
    return param === null ? unknownField(key, key, known) : unknownField(`${param}.${key}`, key, []);
  }
  if (issue.code === 'custom' && issue.params?.refused === true) {
    return new InvalidRequestError(
      `'${param}' is not supported: this server does not have ${issue.message}.`,
      param,
      'unsupported_parameter',
    );
  }
  if (issue.code === 'invalid_type' && isMissing(issue.message)) {
    return new InvalidRequestError(`The field '${param}' is required.`, param, 'missing_required_parameter');
  }
  return new InvalidRequestError(
    `Invalid value for '${param}': ${issueText(issue)}.`,
    param,
    issue.code === 'invalid_type' ? 'invalid_type' : 'invalid_value',
  );
}

/** Names of types for readers of JSON. */
const TYPES: Readonly<Record<string, string>> = {
  int: 'an integer',
  number: 'a number',
  string: 'a string',
  boolean: 'true or false',
  array: 'a list',
  object: 'an object',
  record: 'an object',
};

/** Units in which a list's or a text's length is counted. */
const UNITS: Readonly<Record<string, string>> = { array: ' items', string: ' characters' };

/** Text of what the validator expected, to follow "Invalid value for 'x': ". The schemas' own sentences stay. */
function issueText(issue: z.core.$ZodIssue): string {
  if (!/^(Invalid (input|option|discriminator)|Too (big|small))/.test(issue.message)) return issue.message;
  switch (issue.code) {
    case 'invalid_type':
      return `expected ${TYPES[issue.expected] ?? issue.expected}`;
    case 'too_big':
      return `expected at most ${issue.maximum}${UNITS[issue.origin] ?? ''}`;
    case 'too_small':
      if (issue.origin in UNITS && Number(issue.minimum) === 1) {
        return `expected ${TYPES[issue.origin]} that is not empty`;
      }
      return `expected at least ${issue.minimum}${UNITS[issue.origin] ?? ''}`;
    case 'invalid_value':
      return choiceText(issue.values);
    case 'invalid_union':
      if ('options' in issue && Array.isArray(issue.options)) return choiceText(issue.options);
      return typesText(issue.errors.map(([first]) => first!));
    default:
      return 'expected something else';
  }
}

/** Text such as `expected a string or a list`, where every alternative fails by its type. */
function typesText(issues: readonly z.core.$ZodIssue[]): string {
  const types = issues.map((issue) => (issue.code === 'invalid_type' ? TYPES[issue.expected] : undefined));
  if (types.length === 0 || types.includes(undefined)) return 'expected something else';
  return `expected ${[...new Set(types)].join(' or ')}`;
}

function choiceText(choices: readonly unknown[]): string {
  const written = choices.map((choice) => (typeof choice === 'string' ? `'${choice}'` : String(choice)));
  return `expected ${written.length === 1 ? '' : 'one of '}${written.join(', ')}`;
}
