import { SkeinError } from '../../base/skein-error.js';

/** How a model is parted: each stage has some of the layers, and the ranks of a stage share each of its ops. */
export interface GroupShape {
  /** Ranks of a stage (tensor parallelism). */
  tensorParallelSize: number;
  /** Stages (pipeline parallelism). */
  pipelineParallelSize: number;
}

/** A model cannot be parted among this number of ranks. */
export class RankPlanError extends SkeinError {
  override name = 'RankPlanError';
  override readonly code = 'SKEIN_RANK_PLAN';
}

export function sizeOf({ tensorParallelSize, pipelineParallelSize }: GroupShape): number {
  return tensorParallelSize * pipelineParallelSize;
}

/**
 * Ranks of a stage, ascending:
 *
 *   2 x 3        stage 0   stage 1   stage 2
 *   ranks          0 1       2 3       4 5
 */
export function ranksOfStage({ tensorParallelSize }: GroupShape, stage: number): number[] {
  return Array.from({ length: tensorParallelSize }, (_, place) => stage * tensorParallelSize + place);
}

/** Consecutive things, such as heads or columns. */
export interface Share {
  first: number;
  count: number;
}

/** Deals `total` things in `units` among `ranks`, the first ranks getting the more; the last unit may be smaller. */
export function deal(total: number, ranks: number, unit = 1): Share[] {
  const units = Math.ceil(total / unit);
  const shares: Share[] = [];
  let first = 0;
  for (let rank = 0; rank < ranks; rank++) {
    const own = Math.floor(units / ranks) + (rank < units % ranks ? 1 : 0);
    const end = Math.min(total, first + own * unit);
    shares.push({ first, count: end - first });
    first = end;
  }
  return shares;
}

/** Heads of one rank. */
export interface HeadShare {
  queries: Share;
  keys: Share;
}

/**
 * Deals the heads of attention among ranks. A rank's queries attend to its own keys alone:
 *
 *   9 heads, 3 KV heads    2 ranks   queries 0-5 | 6-8          KV heads 0 1 | 2
 *                          4 ranks   queries 0 1 | 2 | 3-5 | 6-8      KV heads 0 | 0 | 1 | 2     two hold a copy of head 0
 *
 * @throws RankPlanError if there are fewer heads than ranks
 */
export function dealHeads(numHeads: number, kvHeads: number, ranks: number): HeadShare[] {
  const group = numHeads / kvHeads;
  if (ranks <= kvHeads) {
    return deal(kvHeads, ranks).map((keys) => ({
      keys,
      queries: { first: keys.first * group, count: keys.count * group },
    }));
  }
  if (ranks > numHeads) {
    throw new RankPlanError(
      `This model has ${numHeads} heads of attention, which ${ranks} ranks cannot share; at most ${numHeads} are possible.`,
    );
  }
  return deal(ranks, kvHeads).flatMap(({ count }, head) =>
    deal(group, count).map((own) => ({
      keys: { first: head, count: 1 },
      queries: { first: head * group + own.first, count: own.count },
    })),
  );
}

/** Outputs of a product go to the ranks in units of this many, since kernels compute as many side by side. */
const COLUMN_UNIT = 32;

/** Deals the outputs of a product; a rank may get none of a small one. */
export function dealColumns(width: number, ranks: number): Share[] {
  return deal(width, ranks, width >= COLUMN_UNIT * ranks ? COLUMN_UNIT : 1);
}
