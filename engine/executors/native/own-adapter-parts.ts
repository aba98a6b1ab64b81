import type { RankPlan } from '../../sharding/rank-plan.js';
import type { AdapterPart } from './adapter-parts.js';

/**
 * The changes that an adapter makes to a rank's products, from those that it makes to the whole network's: A is whole, of B the rank
 * has the rows of its outputs.
 *
 *   rows of the weight   | q: 0 1 2 | k: 3 4 5 | v: 6 7 8 |      slices of rank 0: 0-1, 3-4, 6-7
 *   part of k                         3 4 5                ->    rows 2 3 of the rank's weight, B's rows 0 1
 */
export function ownAdapterParts(plan: RankPlan, parts: readonly AdapterPart[]): AdapterPart[] {
  const weights = new Map(plan.weights.map((weight) => [weight.name, weight]));
  const places = new Map(plan.origins.map((origin, op) => [origin, op]));
  return parts.flatMap((part): AdapterPart[] => {
    const op = places.get(part.op);
    const product = op === undefined ? undefined : plan.ops[op]!;
    // Another stage has the product, or other ranks all of its outputs.
    if (op === undefined || product === undefined || !('weight' in product) || product.weight === null)
      return [];
    const slices = weights.get(product.weight)!.part?.slices;
    if (slices === undefined) return [{ ...part, op }];
    let local = 0;
    return slices.flatMap(({ first, count }): AdapterPart[] => {
      const begin = Math.max(first, part.firstRow);
      const end = Math.min(first + count, part.firstRow + part.rows);
      const firstRow = local + begin - first;
      local += count;
      if (begin >= end) return [];
      const b = part.b.subarray((begin - part.firstRow) * part.rank, (end - part.firstRow) * part.rank);
      return [{ ...part, op, firstRow, rows: end - begin, b }];
    });
  });
}
