import type { NetworkPlan } from '../../../network/plan.js';
import type { ExecutorOptions } from '../executor.js';
import type { MemoryLayout } from './memory-layout.js';
import { workspaceParts } from './memory-layout.js';

/** Where the angles of a table of frequencies lie, and those of rows turned to their places in the cache. */
export interface AnglePlaces {
  cosines: number;
  sines: number;
}

/** Pointers of all that a step writes. */
export interface Workspace {
  /** Of each value of the plan. */
  values: number[];
  product: number;
  /** By table: that of the batch, then the plan's own. */
  angles: AnglePlaces[];
  /** As `angles`; empty where there are no sinks. */
  sinkAngles: AnglePlaces[];
  sinkQueries: number;
  scores: number;
  slots: number;
  blockTables: number;
  pool: number;
  /** Of one layer. */
  layerBytes: number;
}

/** Takes it. */
export function takeWorkspace(
  plan: NetworkPlan,
  options: ExecutorOptions,
  { kvCache }: MemoryLayout,
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
    pool,
    layerBytes: kvCache / Math.max(1, plan.attention.numLayers),
  };
}
