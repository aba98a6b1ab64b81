import { isDeepStrictEqual } from 'node:util';
import type * as z from 'zod';
import { closestName } from '../../base/did-you-mean.js';
import { InvalidRequestError } from '../errors/request-errors.js';
import { type FieldsNode, fieldsNode, type KnownObject } from './fields-node.js';
import { UnknownFields } from './unknown-fields.js';

/** What happens to unknown fields: a 400, an answer that names them, or nothing. */
const UNKNOWN_FIELD_RULES = ['refuse', 'warn', 'ignore'] as const;
export type UnknownFieldRule = (typeof UNKNOWN_FIELD_RULES)[number];

/** A place in a body, as a chain, whose text is made only where it is reported. */
interface Place {
  above: Place | null;
  key: string | number;
}

/**
 * Finds the fields of a body that its schema does not have, in nested objects too. It walks the body along the schema,
 * so that names that are the client's own (properties of a tool's schema, metadata) are no fields.
 *
 *   schema                          body
 *   {messages: [{role, content}]}   {"messages": [{"role": ..., "contnt": ...}], "foo": 1}
 *                                    found: messages[0].contnt, foo
 *
 * @throws InvalidRequestError for a field of another server or client that would change the answer; with the rule `refuse` for
 * any unknown field.
 */
export function unknownFieldsOf(schema: z.ZodType, body: unknown, rule: UnknownFieldRule): UnknownFields {
  const found = new UnknownFields();
  const node = fieldsNode(schema);
  if (node !== null) visit(node, body, null, { rule, found });
  return found;
}

interface Search {
  rule: UnknownFieldRule;
  found: UnknownFields;
}

function visit(node: FieldsNode, value: unknown, place: Place | null, search: Search): void {
  if (typeof value !== 'object' || value === null) return;
  if (Array.isArray(value)) {
    const { items } = node;
    if (items === null) return;
    for (let i = 0; i < value.length; i++) visit(items, value[i], { above: place, key: i }, search);
    return;
  }
  const forms = formsOf(node, value as Record<string, unknown>);
  if (forms.length === 0) return;
  for (const [name, inner] of Object.entries(value)) {
    // A program may give an option that is not set.
    if (inner === undefined) continue;
    const form = forms.find(({ fields }) => fields.has(name));
    const within = form?.fields.get(name);
    if (within) visit(within, inner, { above: place, key: name }, search);
    else if (form === undefined) checkUnknown(forms, name, inner, place, search);
  }
}

/**
 * The objects of the schema that the value may be: those whose `type` or `role` it has; if it has none's, all. One that takes any field
 * has to be named: it would hide the unknown fields of the others.
 */
function formsOf({ objects }: FieldsNode, value: Record<string, unknown>): readonly KnownObject[] {
  if (objects.length < 2) return objects;
  const fitting = objects.filter(({ tags, takesAny }) =>
    tags.every(([name, values]) => values.has(value[name]) || (value[name] == null && !takesAny)),
  );
  return fitting.length > 0 ? fitting : objects;
}

function checkUnknown(
  forms: readonly KnownObject[],
  name: string,
  value: unknown,
  above: Place | null,
  { rule, found }: Search,
): void {
  if (forms.some(({ takesAny }) => takesAny)) return;
  const elsewhere = forms.find(({ others }) => Object.hasOwn(others, name))?.others[name];
  const place = { above, key: name };
  if (elsewhere !== undefined) {
    const { harmless } = elsewhere;
    if (harmless === 'any' || value === null || harmless.some((one) => isDeepStrictEqual(one, value))) return;
    throw notSupportedHere(pathText(place), elsewhere.why);
  }
  if (rule === 'refuse') {
    throw unknownField(pathText(place), name, forms.length === 1 ? [...forms[0]!.fields.keys()] : []);
  }
  found.add(() => pathText(place));
}

/** Text of a path: `messages[0].content`. */
function pathText(place: Place): string {
  const keys: (string | number)[] = [];
  for (let at: Place | null = place; at !== null; at = at.above) keys.unshift(at.key);
  return keys.reduce<string>(
    (path, key) => (typeof key === 'number' ? `${path}[${key}]` : path === '' ? key : `${path}.${key}`),
    '',
  );
}

function notSupportedHere(param: string, why: string): InvalidRequestError {
  const message = `'${param}' is not supported: ${why}.`;
  return new InvalidRequestError(message, param, 'unsupported_parameter');
}

/** Error for a field that does not exist. @param known names at its place, of which one may be meant */
export function unknownField(param: string, name: string, known: readonly string[]): InvalidRequestError {
  const hint = closestName(name, known);
  const question = hint === null ? '' : ` Did you mean '${hint}'?`;
  return new InvalidRequestError(`Unknown field '${param}'.${question}`, param, 'unknown_parameter');
}
