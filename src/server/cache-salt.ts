import { createHmac, randomBytes } from 'node:crypto';
import type { Caller } from './api-keys.js';

/** The cache ends with the process, and so may this: no client can work out, or choose, the salt of another's prompts. */
const SECRET = randomBytes(32);

/**
 * The salt with which a caller's prompts are kept in the cache: a prompt finds only what has the same one. It is made of who
 * shares the caller's cache and of the request's own salt, so that no key can learn from cached tokens, or from the time to
 * the first token, what others have asked. Undefined: that of all who have none.
 */
export function cacheSaltFor(
  { cacheGroup }: Pick<Caller, 'cacheGroup'>,
  own: bigint | undefined,
): bigint | undefined {
  if (cacheGroup === null) return own;
  // No name of a group holds a null byte. A salt of 0 would be none.
  const text = `${cacheGroup}\0${own ?? ''}`;
  return createHmac('sha256', SECRET).update(text).digest().readBigUInt64LE() || 1n;
}
