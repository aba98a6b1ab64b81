import { type IterationCost, IterationCostEstimator, type IterationWork } from './iteration-cost.js';
import type { SchedulableRequest } from './types.js';

/** What was learned from small chunks says little of large ones: they grow by no more than this at a time. */
const MOST_GROWTH = 2;

/**
 * Keeps the time between two tokens of a generating request under a bound while prompts come in: as long as something
 * generates, an iteration gets only as many context tokens as it has time for, by what recent iterations took.
 *
 *   bound    |- - - - - - - - - - - - - - - - - - - -|
 *   time     [ fixed | generation rows |  context     | usual error ]
 *                                        as many tokens as fit, at least one unit
 *
 * It is a prediction, not a promise: a machine that is suddenly slower exceeds the bound until that has been seen, and
 * where the generation alone takes longer than the bound, prompts still come in by one unit an iteration. Answers do not
 * depend on it, since they do not depend on how prompts are cut.
 */
export class ContextPace {
  readonly #boundMs: number;
  readonly #unit: number;
  readonly #estimator = new IterationCostEstimator();

  /** `unit`: tokens of the smallest chunk that is worth an iteration, such as those of a block. */
  constructor(boundMs: number, unit: number) {
    this.#boundMs = boundMs;
    this.#unit = unit;
  }

  /** An iteration took this long. */
  note(work: IterationWork, ms: number): void {
    this.#estimator.note(work, ms);
  }

  /**
   * Most context tokens of the next iteration; Infinity where nothing generates and so nobody waits for a token.
   * `scheduled` are those of the active requests that may run. `turns`: micro-batches that take turns, so that a request
   * waits for each of them between two of its tokens.
   */
  mostContextTokens(
    active: readonly SchedulableRequest[],
    scheduled: readonly SchedulableRequest[],
    turns: 1 | 2,
  ): number {
    if (!active.some(({ phase }) => phase === 'generation')) return Number.POSITIVE_INFINITY;
    let generationRows = 0;
    let position = 0;
    for (const request of scheduled) {
      if (request.phase === 'generation') generationRows += request.beamWidth + request.draftLength;
      // Of several contexts, the one whose tokens attend to most.
      else position = Math.max(position, request.contextPosition);
    }
    const { cost } = this.#estimator;
    if (cost === null) return this.#unit;
    const within = contextTokensWithin(this.#boundMs / turns, cost, { generationRows, position });
    const tokens = Math.min(within, MOST_GROWTH * cost.tokensSeen);
    return Math.max(this.#unit, tokens - (tokens % this.#unit));
  }
}

/** Context tokens from `position` on that an iteration beside so many generation rows has time for; may be Infinity. */
export function contextTokensWithin(
  boundMs: number,
  { fixedMs, rowMs, tokenMs, pairMs, spread }: IterationCost,
  { generationRows, position }: { generationRows: number; position: number },
): number {
  // Two usual errors: what is predicted in the middle would be exceeded by every other iteration.
  const leftMs = boundMs / (1 + 2 * spread) - fixedMs - rowMs * generationRows;
  if (leftMs <= 0) return 0;
  // tokens * perToken + tokens^2 * pairMs / 2 = leftMs, solved in the form that needs no pairMs above 0.
  const perToken = tokenMs + pairMs * position;
  const root = Math.sqrt(perToken * perToken + 2 * pairMs * leftMs);
  return perToken + root === 0 ? Number.POSITIVE_INFINITY : Math.floor((2 * leftMs) / (perToken + root));
}
