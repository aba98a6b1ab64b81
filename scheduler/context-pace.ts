import { type IterationCost, IterationCostEstimator, type IterationWork } from './iteration-cost.js';
import type { SchedulableRequest } from './types.js';

/** What was learned from small chunks says little of large ones: they grow by no more than this at a time. */
const MOST_GROWTH = 2;
/** Tokens, and pairs of tokens that attend to each other, of which a chunk may be whatever was seen. */
const SMALL_TOKENS = 256;
const SMALL_PAIRS = 2 ** 20;
/** The same of tokens whose logits are returned. */
const SMALL_RETURNED = 16;
/** A context beside which there is nobody may take so many times as long: only who comes while it runs would wait. */
const MOST_ALONE = 4;
/** A chunk that takes a whole iteration's time for less than a unit still has so many tokens. */
const FEWEST_TOKENS = 8;

/** Each absent where there is no such bound. */
export interface PaceBounds {
  /** Milliseconds between two tokens of a generating request. */
  maxInterTokenLatencyMs?: number | undefined;
  /** Milliseconds of an iteration for chunks that do not end their contexts. */
  maxChunkMs?: number | undefined;
}

/**
 * Keeps iterations short while prompts come in, by what recent iterations took. Two bounds:
 *
 * maxInterTokenLatencyMs: as long as something generates, an iteration gets only as many context tokens as it has time for.
 *
 *   bound    |- - - - - - - - - - - - - - - - - - - -|
 *   time     [ fixed | generation rows |  context     | usual error ]
 *                                        as many tokens as fit, at least one unit
 *
 * maxChunkMs: long contexts are cut so that their chunks take no longer, whether anything generates or not: somebody may
 * come while it runs. Where there is no other request at all they may take MOST_ALONE times as long. The further a chunk is behind its prompt's beginning, the more its tokens attend to, and the fewer
 * they are; there are always FEWEST_TOKENS.
 *
 *   prompt   [  chunk  |  chunk | chunk | chunk |...| c | c | c | c | c | c | c | c ]    each takes as long
 *
 * They are predictions, not promises: a machine that is suddenly slower exceeds the bound until that has been seen, and
 * where the generation alone takes longer than the bound, prompts still come in by one unit an iteration. Answers do not
 * depend on it, since they do not depend on how prompts are cut.
 */
export class ContextPace {
  readonly #bounds: PaceBounds;
  readonly #unit: number;
  readonly #estimator = new IterationCostEstimator();

  /** `unit`: tokens of the smallest chunk that is worth an iteration, such as those of a block; a power of two. */
  constructor(bounds: PaceBounds, unit: number) {
    this.#bounds = bounds;
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
    const { maxInterTokenLatencyMs: boundMs } = this.#bounds;
    if (boundMs === undefined || !active.some(({ phase }) => phase === 'generation')) {
      return Number.POSITIVE_INFINITY;
    }
    let generationRows = 0;
    let position = 0;
    let isReturned = false;
    for (const request of scheduled) {
      if (request.phase === 'generation') generationRows += request.beamWidth + request.draftLength;
      else {
        // Where there are several contexts, the one whose tokens attend to most counts.
        position = Math.max(position, request.contextPosition);
        isReturned ||= request.returnsContextRows ?? false;
      }
    }
    const { cost } = this.#estimator;
    if (cost === null) return this.#unit;
    const within = contextTokensWithin(boundMs / turns, cost, { generationRows, position, isReturned });
    const tokens = Math.min(within, MOST_GROWTH * cost.tokensSeen, mostReturned(isReturned, cost));
    return Math.max(this.#unit, tokens - (tokens % this.#unit));
  }

  /** See Chunking.longestChunk; what an iteration costs beside the chunk does not count. `turns` as above. */
  longestChunk(request: SchedulableRequest, turns: 1 | 2, isAlone = false): number {
    const { contextPosition: position, returnsContextRows: isReturned = false } = request;
    const { maxChunkMs } = this.#bounds;
    if (maxChunkMs === undefined) return Number.POSITIVE_INFINITY;
    const boundMs = isAlone ? MOST_ALONE * maxChunkMs : maxChunkMs;
    const { cost } = this.#estimator;
    if (cost === null) return this.#unit;
    // Nobody counts on this bound as on the other: chunks that usually take as long are right.
    const chunkOnly = { ...cost, fixedMs: 0, rowMs: 0, spread: 0 };
    const within = contextTokensWithin(boundMs / turns, chunkOnly, {
      generationRows: 0,
      position,
      isReturned,
    });
    const mostTokens = Math.max(SMALL_TOKENS, MOST_GROWTH * cost.tokensSeen);
    const mostPairs = Math.max(SMALL_PAIRS, MOST_GROWTH * cost.pairsSeen);
    const mostBehind = mostPairs / Math.max(1, position);
    return this.#rounded(Math.min(within, mostTokens, mostBehind, mostReturned(isReturned, cost)));
  }

  /** Whole units, or the largest number that halving a unit comes to. */
  #rounded(tokens: number): number {
    if (tokens >= this.#unit) return tokens - (tokens % this.#unit);
    let part = this.#unit;
    while (part > tokens && part > FEWEST_TOKENS) part /= 2;
    return part;
  }
}

/**
 * Most tokens of a context whose logits are returned: what they cost shows with the first chunk of them, which is of
 * SMALL_RETURNED tokens. A row of logits may cost as much as a hundred tokens of a small model with a large vocabulary.
 */
function mostReturned(isReturned: boolean, { returnedSeen }: IterationCost): number {
  return isReturned ? Math.max(SMALL_RETURNED, MOST_GROWTH * returnedSeen) : Number.POSITIVE_INFINITY;
}

/** What the context tokens of an iteration stand beside and behind. */
interface ChunkPlace {
  generationRows: number;
  position: number;
  /** Their logits are returned. */
  isReturned?: boolean;
}

/** Context tokens from `position` on that an iteration beside so many generation rows has time for; may be Infinity. */
export function contextTokensWithin(
  boundMs: number,
  { fixedMs, rowMs, tokenMs, pairMs, returnedMs, spread }: IterationCost,
  { generationRows, position, isReturned = false }: ChunkPlace,
): number {
  // Two usual errors: what is predicted in the middle would be exceeded by every other iteration.
  const leftMs = boundMs / (1 + 2 * spread) - fixedMs - rowMs * generationRows;
  if (leftMs <= 0) return 0;
  // tokens * perToken + tokens^2 * pairMs / 2 = leftMs, solved in the form that needs no pairMs above 0.
  const perToken = tokenMs + (isReturned ? returnedMs : 0) + pairMs * position;
  const root = Math.sqrt(perToken * perToken + 2 * pairMs * leftMs);
  return perToken + root === 0 ? Number.POSITIVE_INFINITY : Math.floor((2 * leftMs) / (perToken + root));
}
