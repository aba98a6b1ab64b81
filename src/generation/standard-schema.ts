import { messageOf } from '../../base/error-text.js';
import { field, says } from '../../base/named-text.js';
import { asClause } from '../../base/sentences.js';
import { InvalidRequestError } from '../errors/request-errors.js';

/** Version of JSON Schema that guides are written in. */
const TARGET = 'draft-2020-12';

/**
 * A schema of zod, ArkType or another library that follows Standard Schema (https://standardschema.dev), as its package
 * `@standard-schema/spec` describes it. ArkType's are functions.
 */
export interface StandardSchema<Output = unknown> {
  readonly '~standard': {
    readonly vendor: string;
    readonly validate: (value: unknown) => unknown;
    readonly types?: { readonly output: Output } | undefined;
    /** Of those that follow Standard JSON Schema. */
    readonly jsonSchema?: { readonly input: (options: { readonly target: string }) => object };
  };
}

/** What a Standard Schema makes of what it accepts. */
export type OutputOf<Schema extends StandardSchema> = NonNullable<Schema['~standard']['types']>['output'];

/** What a Standard Schema says of a value: what it makes of it, or each fault in words. */
export type Validated = { value: unknown } | { faults: readonly string[] };

/**
 * The JSON schema of what a Standard Schema accepts, so that the library can parse each answer that the guide allows; any other value as it is.
 * @throws InvalidRequestError where the library has no JSON schema for it
 */
export function asJsonSchema<Value>(value: Value | StandardSchema, param: string): Value | object {
  if (!isStandardSchema(value)) return value as Value;
  const made = jsonSchemaOf(value);
  if (!('lack' in made)) return made.schema;
  const hint = made.hasNone ? " make one by the library's own means." : '';
  const words = `a schema of ${value['~standard'].vendor} ${made.lack}${made.hasNone ? ';' : '.'}${hint}`;
  throw new InvalidRequestError(says`${field(param)} has json: ${words}`, param, 'invalid_guide');
}

/** The JSON schema of what a Standard Schema accepts, or what it lacks, in words. */
export function jsonSchemaOf(
  schema: StandardSchema,
): { schema: object } | { lack: string; hasNone: boolean } {
  const { jsonSchema } = schema['~standard'];
  if (typeof jsonSchema?.input !== 'function')
    return {
      lack: 'without ~standard.jsonSchema, from which no JSON schema can be made here',
      hasNone: true,
    };
  try {
    return { schema: jsonSchema.input({ target: TARGET }) };
  } catch (error) {
    return { lack: `that has no JSON schema: ${asClause(messageOf(error))}`, hasNone: false };
  }
}

export function isStandardSchema(value: unknown): value is StandardSchema {
  if ((typeof value !== 'object' && typeof value !== 'function') || value === null) return false;
  const { '~standard': standard } = value as Partial<StandardSchema>;
  // A request's JSON has no functions.
  return typeof standard === 'object' && standard !== null && typeof standard.validate === 'function';
}

/** Most faults that are named of a value. */
const MAX_FAULTS = 8;

/** Validates a value by a Standard Schema. */
export async function validatedBy(schema: StandardSchema, value: unknown): Promise<Validated> {
  const found = (await schema['~standard'].validate(value)) as {
    value?: unknown;
    issues?: readonly { message: string; path?: readonly unknown[] | undefined }[] | undefined;
  };
  if (found.issues === undefined) return { value: found.value };
  return { faults: found.issues.slice(0, MAX_FAULTS).map(({ message, path = [] }) => said(message, path)) };
}

/** A fault with its place. A part of a path is a key, or an object with one. */
function said(message: string, path: readonly unknown[]): string {
  const keys = path.map((part) =>
    typeof part === 'object' && part !== null && 'key' in part ? part.key : part,
  );
  return keys.length === 0 ? message : `${keys.map(String).join('.')}: ${message}`;
}
