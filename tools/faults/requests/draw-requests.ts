import { Random } from '../../support/random.js';
import { REQUEST_KINDS, type RequestKind } from './kinds.js';
import type { Script } from './script.js';

/** A request of a run. */
export interface DrawnRequest {
  /** Its number in the run. */
  index: number;
  /** Name of its kind. */
  kind: string;
  script: Script;
}

/**
 * Draws requests of all kinds. Each one depends on the seed and its number alone, so a longer run begins with the same ones.
 * @param isOwn true: also those that only Skein takes
 * @param kind only those whose name has this text; empty: all
 */
export function drawRequests(count: number, seed: number, isOwn: boolean, kind = ''): DrawnRequest[] {
  const kinds = REQUEST_KINDS.filter((one) => (isOwn || one.isOwn !== true) && one.name.includes(kind));
  if (kinds.length === 0) throw new Error(`No kind of request has "${kind}" in its name.`);
  // Each kind in turn, in an order of the seed: a short run has all of them.
  const order = new Random(seed).permutation(kinds.length);
  return Array.from({ length: count }, (_, index): DrawnRequest => {
    const { name, draw }: RequestKind = kinds[order[index % kinds.length]!]!;
    return { index, kind: name, script: draw(new Random(seed * 1_000_003 + index)) };
  });
}
