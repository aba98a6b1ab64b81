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

/** Which kinds of requests a run has. */
export interface DrawOptions {
  /** Also those that only Skein takes. */
  isOwn: boolean;
  /** Only those whose name has this text; empty: all. */
  kind: string;
}

/** Draws requests of all kinds. Each one depends on the seed and its number alone, so a longer run begins with the same ones. */
export function drawRequests(count: number, seed: number, { isOwn, kind }: DrawOptions): DrawnRequest[] {
  const isIn = ({ name, isOwn: ofSkein = false }: RequestKind) => (isOwn || !ofSkein) && name.includes(kind);
  const kinds = REQUEST_KINDS.filter(isIn);
  if (kinds.length === 0) throw new Error(`No kind of request has "${kind}" in its name.`);
  // Each kind in turn, in an order of the seed: a short run has all of them.
  const order = new Random(seed).permutation(kinds.length);
  return Array.from({ length: count }, (_, index): DrawnRequest => {
    const { name, draw }: RequestKind = kinds[order[index % kinds.length]!]!;
    return { index, kind: name, script: draw(new Random(seed * 1_000_003 + index)) };
  });
}
