import { QueueFullError } from '../../callbacks/token-request.js';

/** Bounds and order of waiting requests; see InProcessHostOptions. */
export interface QueueLimits {
  maxQueueSize: number;
  /** Default: with fair queueing as many as there are free places, else `maxQueueSize`. */
  maxQueueSizePerKey?: number | undefined;
  fairQueueing: boolean;
}

/** Numbers of requests that wait at present. */
export interface Waiters {
  size: number;
  /** Those of the key that brings one more. */
  ofKey: () => number;
}

/**
 * Decides whether one more request may wait. With fair queueing a key may by default have as many waiting
 * requests as there are free places (the dynamic threshold of Choudhury and Hahne, 1998, with factor 1), so
 * that no key can fill the queue: alone it gets half of it, with one other flood a third, and a key without
 * requests gets a place as long as there is one.
 *
 *   256 places      A floods: 128 wait, 128 free      then B floods: 64 wait, 64 free      C has room
 *   as A drains     85 of A, 85 of B, 86 free
 *
 * Requests are refused when they come, never later: the stream of one that waits may have begun, and other prompts of
 * the same HTTP request may be running. Weights count for turns and not here, since they say how fast a key's requests
 * leave, and a heavy key could otherwise hold nearly everything.
 *
 * @returns null where it may, else why not
 */
export function whyNoRoom(
  { maxQueueSize, maxQueueSizePerKey, fairQueueing }: QueueLimits,
  { size, ofKey }: Waiters,
): { limit: number; ofOneKey: boolean } | null {
  if (size >= maxQueueSize) return { limit: maxQueueSize, ofOneKey: false };
  const isShared = fairQueueing && maxQueueSizePerKey === undefined;
  const most = isShared ? maxQueueSize - size : (maxQueueSizePerKey ?? maxQueueSize);
  if (most >= maxQueueSize) return null;
  const count = ofKey();
  return count < most ? null : { limit: isShared ? count : most, ofOneKey: true };
}

/** @param retryAfterMs estimated milliseconds until those that wait have left @throws QueueFullError */
export function requireRoom(
  limits: QueueLimits,
  waiters: Waiters,
  retryAfterMs: (size: number) => number | null,
): void {
  const full = whyNoRoom(limits, waiters);
  if (full === null) return;
  const { limit, ofOneKey } = full;
  throw new QueueFullError(limit, { ofOneKey, retryAfterMs: retryAfterMs(waiters.size) });
}
