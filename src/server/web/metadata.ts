import * as z from 'zod';
import { ApiError } from './errors.js';

/** @throws ApiError for a name that objects do not keep, and that would be lost. */
export function checkMetadata(body: object): void {
  const { metadata: given } = body as { metadata?: unknown };
  if (typeof given !== 'object' || given === null || !Object.hasOwn(given, '__proto__')) return;
  const param = 'metadata.__proto__';
  throw new ApiError(400, `Invalid value for '${param}': this name cannot be kept.`, {
    param,
    code: 'invalid_value',
  });
}

/** Up to 16 short texts by names, which the server keeps for the client. */
export const metadata = z
  .record(z.string().max(64), z.string().max(512))
  .refine((pairs) => Object.keys(pairs).length <= 16, 'expected at most 16 pairs');
