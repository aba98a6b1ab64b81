import { createHmac, randomBytes } from 'node:crypto';
import type { Caller } from './api-keys.js';

/**
 * Key of the salts: no client can work out, or choose, the salt of another's prompts. New in each process like the cache, unless that
 * is kept on a disk.
 */
let secret: Uint8Array = randomBytes(32);

/** From now on the salts of this process are made with a secret that later processes have too. */
export function useCacheSecret(kept: Uint8Array): void {
  secret = kept;
}

/**
 * Salt with which a caller's prompts are kept in the cache: a prompt finds only blocks of the same salt. It is made of
 * the caller's cache group and of the request's own salt, so that no key can learn from cached tokens, or from the time
 * to the first token, what others have asked. Undefined: the salt shared by all who have none.
 */
export function cacheSaltFor(
  { cacheGroup }: Pick<Caller, 'cacheGroup'>,
  own: bigint | undefined,
): bigint | undefined {
  if (cacheGroup === null) return own;
  // No group's name holds a null byte. A salt of 0 would count as none.
  const text = `${cacheGroup}\0${own ?? ''}`;
  return createHmac('sha256', secret).update(text).digest().readBigUInt64LE() || 1n;
}
