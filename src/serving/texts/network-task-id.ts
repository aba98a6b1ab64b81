import { createHmac, randomBytes } from 'node:crypto';

/** New in each process, like the caches of adapters. */
const SECRET = randomBytes(32);
const HIGHEST_BIT = 1n << 63n;

/**
 * The number by which the engine knows the adapter that a client calls `taskId`. No client finds, or replaces, an adapter that another
 * API key has sent, or one that has a name: those have small numbers.
 */
export function networkTaskId(caller: string, taskId: bigint): bigint {
  const digest = createHmac('sha256', SECRET).update(`${taskId}\0${caller}`).digest();
  return digest.readBigUInt64LE() | HIGHEST_BIT;
}
