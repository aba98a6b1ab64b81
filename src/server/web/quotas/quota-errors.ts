import { ApiError } from '../errors.js';
import { LIMITS, type LimitName } from './key-limits.js';
import type { Shortage } from './key-quota.js';

/** Code of the errors of limits of keys, as OpenAI's clients know it. */
export const RATE_LIMITED = 'rate_limit_exceeded';

/** Error for a key whose limit is used up for now. */
export function limitReached(key: string, { name, limit, wanted, remaining, resetMs }: Shortage): ApiError {
  const { unit, words } = LIMITS[name];
  const seconds = Math.max(1, Math.ceil(resetMs / 1000));
  const message = `Rate limit reached for the API key '${key}' on ${words}: the limit is ${limit}, ${remaining} are left, and this request needs ${wanted}. Please try again in ${seconds} s.`;
  return new ApiError(429, message, {
    type: unit,
    code: RATE_LIMITED,
    headers: { 'retry-after': String(seconds) },
  });
}

/** Error for a request that is more than its key may ever have within a window: it is in vain to come again. */
export function neverAllowed(key: string, name: LimitName, limit: number, wanted: number): ApiError {
  const { unit, words } = LIMITS[name];
  const how = unit === 'tokens' ? ' Ask for fewer tokens (max_tokens), or shorten the prompt.' : '';
  const message = `Request too large for the API key '${key}' on ${words}: the limit is ${limit}, and this request needs ${wanted}.${how}`;
  return new ApiError(429, message, {
    type: unit,
    code: RATE_LIMITED,
    // OpenAI's clients read it, and those of Anthropic.
    headers: { 'x-should-retry': 'false' },
  });
}

/** Error for limits that cannot be looked at. */
export function limitsUnreachable(cause: unknown): ApiError {
  const message = 'The limits of API keys cannot be reached at present; try again later.';
  return new ApiError(503, message, { code: 'limits_unavailable', headers: { 'retry-after': '1' }, cause });
}
