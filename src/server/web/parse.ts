import * as z from 'zod';
import { carryForms } from '../../../base/written-json.js';
import { InvalidRequestError } from '../../errors/request-errors.js';
import type { UnknownFieldRule } from '../../schemas/field-rules.js';
import { unwrapped } from '../../schemas/fields-node.js';
import { checkLists } from '../../schemas/long-lists.js';
import type { UnknownFields } from '../../schemas/unknown-fields.js';
import { unknownFieldsIn, validated } from '../../schemas/validated.js';
import { ApiError } from './errors.js';
import { checkMetadata, metadata } from './metadata.js';

/**
 * Validates a body whose unknown fields are treated by a rule. @param onUnknown called before the validator with those
 * that were found. @throws ApiError 400 that names the field, the expected value and the alternatives.
 */
export function parseBody<T extends z.ZodObject>(
  schema: T,
  body: unknown,
  rule: UnknownFieldRule,
  onUnknown: (fields: UnknownFields) => void,
): z.output<T> {
  checkObject(body);
  return inBodysNames(() => {
    checkLists(body);
    const { metadata: kept } = schema.shape as Readonly<Record<string, z.core.$ZodType | undefined>>;
    if (kept !== undefined && unwrapped(kept) === metadata) checkMetadata(body);
    const unknown = unknownFieldsIn(schema, body, rule);
    if (unknown.count > 0 && rule === 'warn') onUnknown(unknown);
    const parsed = validated(schema, body);
    carryForms(body, parsed);
    return parsed;
  });
}

/** Errors of the schemas name fields as the body has them. */
function inBodysNames<T>(run: () => T): T {
  try {
    return run();
  } catch (error) {
    if (!(error instanceof InvalidRequestError)) throw error;
    throw new ApiError(400, error.message, { param: error.param, code: error.apiCode });
  }
}

/** Validates parameters, of which none may be unknown. @throws ApiError 400 as parseBody. */
export function parseParameters<T extends z.ZodObject>(
  schema: T,
  parameters: Readonly<Record<string, string>>,
): z.output<T> {
  for (const [name, value] of Object.entries(parameters)) {
    // It would be read as 0.
    if (
      value.trim() !== '' ||
      !Object.hasOwn(schema.shape, name) ||
      !(unwrapped(schema.shape[name]) instanceof z.ZodNumber)
    )
      continue;
    const message = `Invalid value for '${name}': expected a number, found nothing.`;
    throw new ApiError(400, message, { param: name, code: 'invalid_type' });
  }
  return inBodysNames(() => validated(schema, parameters));
}

function checkObject(body: unknown): asserts body is object {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) {
    throw new ApiError(400, 'The body must be a JSON object.');
  }
}
