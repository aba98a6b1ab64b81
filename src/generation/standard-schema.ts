import { messageOf } from '../../base/error-text.js';
import { field, says } from '../../base/named-text.js';
import { asClause } from '../../base/sentences.js';
import { InvalidRequestError } from '../errors/request-errors.js';

/** Version of JSON Schema that guides are written in. */
const TARGET = 'draft-2020-12';

/**
 * A schema of zod, ArkType or another library that follows Standard JSON Schema (https://standardschema.dev/json-schema). ArkType's are
 * functions.
 */
export interface StandardSchema {
  readonly '~standard': {
    readonly vendor: string;
    readonly validate: (value: unknown) => unknown;
    readonly jsonSchema?: { readonly input: (options: { readonly target: string }) => object };
  };
}

/**
 * The JSON schema of what a Standard Schema accepts, so that the library can parse each answer that the guide allows; any other value as it is.
 * @throws InvalidRequestError where the library has no JSON schema for it
 */
export function asJsonSchema<Value>(value: Value | StandardSchema, param: string): Value | object {
  if (!isStandardSchema(value)) return value as Value;
  const { vendor, jsonSchema } = value['~standard'];
  if (typeof jsonSchema?.input !== 'function') {
    throw new InvalidRequestError(
      says`${field(param)} has json: a schema of ${vendor} without ~standard.jsonSchema, from which no JSON schema can be made here; make one by the library's own means.`,
      param,
      'invalid_guide',
    );
  }
  try {
    return jsonSchema.input({ target: TARGET });
  } catch (error) {
    const why = asClause(messageOf(error));
    throw new InvalidRequestError(
      says`${field(param)} has json: a schema of ${vendor} that has no JSON schema: ${why}.`,
      param,
      'invalid_guide',
    );
  }
}

function isStandardSchema(value: unknown): value is StandardSchema {
  if ((typeof value !== 'object' && typeof value !== 'function') || value === null) return false;
  const { '~standard': standard } = value as Partial<StandardSchema>;
  // A request's JSON has no functions.
  return typeof standard === 'object' && standard !== null && typeof standard.validate === 'function';
}
