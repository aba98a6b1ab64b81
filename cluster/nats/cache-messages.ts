import { isCount, isWord } from './field-checks.js';

/**
 * How a worker's cache changes, published to all gateways. The cache has a number, which counts the changes
 * that were published; number 0 is an empty cache. Blocks are named by their hashes: see promptHashes.
 *
 *   cache 0 --change 0 to 1--> cache 1 --change 1 to 2--> cache 2 ...
 *           '------------- one change, 0 to 2 -----------'
 *
 * A block that was stored or removed in between is in the list of what it is at the end. So a change may also be applied to a cache
 * whose number lies between its two.
 */
export interface CacheChange {
  kind: 'cacheChange';
  worker: string;
  /** The cache has the number `from` before the change, and `next` after it. */
  from: number;
  next: number;
  /** Nothing that was there before is there any more: the engine is new, or what it has is not known. */
  isAnew: boolean;
  stored: Float64Array;
  removed: Float64Array;
  /**
   * Those of `stored` after which states are kept. A block is stored once more when that changes. Absent: the
   * model is not known to have any.
   */
  withState?: Float64Array | undefined;
}

/**
 * A gateway asks a worker for its cache: answered with a CacheChange from the number that the gateway has, or, where there is none, with
 * parts of the whole.
 */
export interface CacheAsk {
  kind: 'cacheAsk';
  /** Number of the cache that the gateway has; 0: it has nothing. */
  from: number;
  /**
   * Asks for the next part of the whole with this number, from block `offset` on. null: no part of it has
   * come.
   */
  whole: { next: number; offset: number } | null;
}

/** Blocks of a cache with the number `next`. */
export interface CachePart {
  kind: 'cachePart';
  next: number;
  /** Blocks in the parts before this one, and in all. */
  offset: number;
  total: number;
  blocks: Float64Array;
  /** Those of them after which states are kept; see CacheChange. */
  withState?: Float64Array | undefined;
}

/** Whether a worker takes the request that was sent to it. False: it has no room for it. */
export interface TakenAnswer {
  kind: 'taken';
  isTaken: boolean;
}

/** Most blocks that a worker reports. */
export const MAX_CACHE_BLOCKS = 2 ** 20;
/** Most blocks in one message: an eighth of a megabyte. */
export const MAX_MESSAGE_BLOCKS = 2 ** 14;

const isBlocks = (value: unknown) =>
  value instanceof Float64Array && value.length <= MAX_MESSAGE_BLOCKS && value.every(isCount);

const isBlocksOrAbsent = (value: unknown) => value === undefined || isBlocks(value);

const isWhole = (value: unknown) => {
  if (value === null) return true;
  const { next, offset } = (value ?? {}) as Record<string, unknown>;
  return isCount(next) && isCount(offset);
};

type Check = (message: Record<string, unknown>) => boolean;

export const CACHE_CHECKS: Record<'cacheChange' | 'cacheAsk' | 'cachePart' | 'taken', Check> = {
  cacheChange: ({ worker, from, next, isAnew, stored, removed, withState }) =>
    isWord(worker) &&
    isCount(from) &&
    isCount(next) &&
    (from as number) <= (next as number) &&
    typeof isAnew === 'boolean' &&
    isBlocks(stored) &&
    isBlocks(removed) &&
    isBlocksOrAbsent(withState),
  cacheAsk: ({ from, whole }) => isCount(from) && isWhole(whole),
  cachePart: ({ next, offset, total, blocks, withState }) =>
    isCount(next) &&
    isBlocks(blocks) &&
    isBlocksOrAbsent(withState) &&
    isCount(total) &&
    (total as number) <= MAX_CACHE_BLOCKS &&
    isCount(offset) &&
    (offset as number) + (blocks as Float64Array).length <= (total as number),
  taken: ({ isTaken }) => typeof isTaken === 'boolean',
};
