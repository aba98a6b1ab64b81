import type { OfferedBlocks } from '../../callbacks/worker-messages.js';
import { fetchBytes } from './fetch-bytes.js';
import type { BlocksAnswer, BlocksMessage, HandOver } from './messages.js';

/** Bytes of the blocks that are written to the cache at once, between two iterations of the engine. */
const PART_BYTES = 8 * 1024 * 1024;

export interface BlockFetch {
  id: string;
  /** Its bytes: all blocks, then the states after the last one. */
  handOver: HandOver;
  /** Bytes of these states; 0: there are none. */
  stateBytes: number;
  /** Number of its blocks, from the start of the prompt on, that need not be fetched. */
  first: number;
  /** Most bytes of one answer. */
  maxBytes: number;
  ask: (worker: string, message: BlocksMessage) => Promise<BlocksAnswer | null>;
  /**
   * Writes whole blocks; the states come with the last of them alone. Resolves with the number of these blocks that the cache has
   * then.
   */
  write: (blocks: OfferedBlocks) => Promise<number>;
  /** False: the blocks are no longer needed. */
  isWanted: () => boolean;
}

/**
 * Brings blocks from the worker that has computed them into the cache of this one, in parts of whole blocks; while one
 * part is written, the next one comes:
 *
 *   ask    |0 1 2 3|4 5 6 7| ...        slices of a message each, checked one by one
 *   write          |   0   |   1   | ...
 *
 * It ends where a slice does not come, or is not what was sent; the blocks in front of it are of use all the same. So it does
 * where the cache has lost the first ones meanwhile. Never rejects, except where `write` does.
 * @returns number of the blocks that the cache has of it
 */
export async function fetchBlocks(fetch: BlockFetch): Promise<number> {
  const { stateBytes, id, maxBytes, isWanted } = fetch;
  const { bytes, numBlocks, worker, attempt } = fetch.handOver;
  const ask = (offset: number, length: number) =>
    fetch.ask(worker, { kind: 'blocks', id, attempt, offset, length });
  if (numBlocks === 0) return 0;
  const blockBytes = (bytes - stateBytes) / numBlocks;
  const step = blockBytes === 0 ? numBlocks : Math.max(1, Math.floor(PART_BYTES / blockBytes));
  const partAt = (first: number) => {
    const count = Math.min(step, numBlocks - first);
    const behind = first + count === numBlocks ? stateBytes : 0;
    return count <= 0
      ? null
      : fetchBytes(first * blockBytes, count * blockBytes + behind, { maxBytes, isWanted, ask });
  };
  let next = partAt(fetch.first);
  for (let { first } = fetch; next !== null; first += step) {
    const part = await next;
    if (part === null || !fetch.isWanted()) return first;
    next = partAt(first + step);
    const count = Math.min(step, numBlocks - first);
    const bytes = part.subarray(0, count * blockBytes);
    const state = part.length > count * blockBytes ? part.subarray(count * blockBytes) : null;
    const has = await fetch.write({ first, numBlocks: count, bytes, state });
    if (has < count) {
      // The blocks after it would not be found.
      await next;
      return first + has;
    }
  }
  return Math.max(numBlocks, fetch.first);
}
