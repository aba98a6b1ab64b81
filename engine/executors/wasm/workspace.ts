import { kvBytesPerToken } from '../../../kvcache/kv-cache-size.js';
import type { NetworkPlan } from '../../../network/plan.js';
import type { ExecutorOptions } from '../executor.js';
import { workspaceParts } from './memory-layout.js';

/** Where the angles of a table of frequencies lie, and those of rows turned to their places in the cache. */
export interface AnglePlaces {
  cosines: number;
  sines: number;
}

/** Pointers of all that a step writes. */
export interface Workspace {
  /** Where each value of the plan begins. */
  values: number[];
  product: number;
  /** Places of the angles of each table: that of the batch, then the plan's own. */
  angles: AnglePlaces[];
  /** Places of the sinks' angles, as in `angles`; empty where there are no sinks. */
  sinkAngles: AnglePlaces[];
  sinkQueries: number;
  scores: number;
  slots: number;
  blockTables: number;
  /** Where the pool of each layer begins. */
  pools: number[];
}

/** Takes it. */
export function takeWorkspace(
  plan: NetworkPlan,
  options: ExecutorOptions,
  pool: number,
  take: (bytes: number) => number,
): Workspace {
  const parts = workspaceParts(plan, options);
  const slots = parts.slots.map(take);
  const places = (): AnglePlaces => ({ cosines: take(parts.angles), sines: take(parts.angles) });
  const tables = [null, ...(plan.attention.ropeTables ?? [])];
  return {
    values: plan.values.map(({ slot }) => slots[slot]!),
    product: take(parts.product),
    angles: tables.map(places),
    sinkAngles: parts.sinkQueries > 0 ? tables.map(places) : [],
    sinkQueries: take(parts.sinkQueries),
    scores: take(parts.scores),
    slots: take(parts.slotsOfRows),
    blockTables: take(parts.blockTables),
    pools: poolsOf(plan, options, pool),
  };
}

/** One behind the other: all blocks of a layer, and then those of the next, which may be of another size. */
function poolsOf({ caches }: NetworkPlan, options: ExecutorOptions, first: number): number[] {
  const { numBlocks, numSecondaryBlocks = 0, tokensPerBlock } = options;
  const tokens = (numBlocks + numSecondaryBlocks) * tokensPerBlock;
  let next = first;
  return caches.map((shape) => {
    const pool = next;
    next += tokens * kvBytesPerToken(shape, 'f32');
    return pool;
  });
}
