/** A model that was loaded on request. */
export interface Resident {
  name: string;
  /** Bytes of memory that it takes. */
  bytes: number;
  /** It answers, or is about to receive a request: it stays. */
  isBusy: boolean;
  /** Milliseconds of a clock when it was used last. */
  lastUsedMs: number;
  /** Milliseconds that it stays after its last use; Infinity: for ever, but for want of memory. */
  keepAliveMs: number;
}

/**
 * Models to unload so that `needed` more bytes fit into `limit`: those used least recently go first, and those that were to
 * stay for ever last. Empty: there is room; null: not even all idle ones together make room now.
 *
 *   limit 10, needed 5     a 3 (idle, old)   b 3 (busy)   c 2 (idle)    8 + 5 > 10 -> a;   5 + 5 = 10 -> enough
 */
export function evictionsFor(
  residents: readonly Resident[],
  needed: number,
  limit: number,
): Resident[] | null {
  let used = residents.reduce((sum, { bytes }) => sum + bytes, 0);
  const evicted: Resident[] = [];
  for (const resident of residents.filter(({ isBusy }) => !isBusy).sort(byWorth)) {
    if (used + needed <= limit) break;
    used -= resident.bytes;
    evicted.push(resident);
  }
  return used + needed <= limit ? evicted : null;
}

/** Sorts by which is missed least. */
function byWorth(a: Resident, b: Resident): number {
  const isKept = (one: Resident) => Number(one.keepAliveMs === Number.POSITIVE_INFINITY);
  return isKept(a) - isKept(b) || a.lastUsedMs - b.lastUsedMs;
}

/** When a model that is idle has been so for as long as it stays; Infinity: never. */
export function expiryMs({ lastUsedMs, keepAliveMs }: Pick<Resident, 'lastUsedMs' | 'keepAliveMs'>): number {
  return lastUsedMs + keepAliveMs;
}

/** Memory of a model before it is loaded, in bytes. */
export interface MemoryShare {
  /** All that it takes. */
  bytes: number;
  /** What is left for its KV cache. */
  cacheBytes: number;
}

/** The part of the bound that one model's KV cache takes at most, so that a second model has room too. */
const CACHE_SHARE = 1 / 4;

/**
 * What a model takes of the bound: its weights as they are, and a KV cache of what it can use, of a quarter of the bound, or of what the
 * weights leave, whichever is least. Null: the weights alone do not fit.
 */
export function memoryShare(fixedBytes: number, mostCacheBytes: number, limit: number): MemoryShare | null {
  if (fixedBytes > limit) return null;
  const cacheBytes = Math.floor(Math.min(mostCacheBytes, limit * CACHE_SHARE, limit - fixedBytes));
  return { bytes: fixedBytes + cacheBytes, cacheBytes };
}
