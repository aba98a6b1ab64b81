import { kvBytesPerToken } from '../../../kvcache/kv-cache-size.js';
import type { NetworkPlan } from '../../../network/plan.js';
import type { ExecutorOptions } from '../executor.js';
import { type DeltaParts, type ExpertParts, workspaceParts } from './memory-layout.js';

/** Pointers to the angles of a table of frequencies, by rows' positions or by their places in the cache. */
export interface AnglePlaces {
  cosines: number;
  sines: number;
}

/** Pointers to all memory that a step writes. */
export interface Workspace {
  /** Pointer to each value of the plan. */
  values: number[];
  product: number;
  /** Angles of each table: that of the batch, then the plan's own. */
  angles: AnglePlaces[];
  /** Angles for the sinks, as in `angles`; empty without sinks. */
  sinkAngles: AnglePlaces[];
  sinkQueries: number;
  scores: number;
  slots: number;
  /** Pointers to the rows of a mixture of experts. */
  experts: ExpertParts;
  /** Pointers to what ops with states compute in. */
  delta: DeltaParts;
  /** The pool of states, followed by the log of drafts. */
  states: number;
  blockTables: number;
  /** Pointer to the tables of distances. */
  relative: number;
  /** Pointer to the pool of each layer. */
  pools: number[];
}

/**
 * Takes memory for the workspace.
 * @param pool pointer to the blocks, and `states` to the states, which have been taken
 */
export function takeWorkspace(
  plan: NetworkPlan,
  options: ExecutorOptions,
  { pool, states }: { pool: number; states: number },
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
    experts: {
      inputs: take(parts.experts.inputs),
      gated: take(parts.experts.gated),
      sums: take(parts.experts.sums),
    },
    delta: {
      factors: take(parts.delta.factors),
      keys: take(parts.delta.keys),
      lostState: take(parts.delta.lostState),
      history: take(parts.delta.history),
      output: take(parts.delta.output),
    },
    states,
    blockTables: take(parts.blockTables),
    relative: take(parts.relative),
    pools: poolsOf(plan, options, pool),
  };
}

/**
 * Pointers to the pools, one after the other: all blocks of a layer, then those of the next, which may be of
 * another size.
 */
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
