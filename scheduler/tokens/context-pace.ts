import { type IterationCost, IterationCostEstimator, type IterationWork } from './iteration-cost.js';
import type { ChunkMs, SchedulableRequest } from './types.js';

/** Largest growth of chunks from one iteration to the next: times seen for small chunks say little about large ones. */
const MAX_GROWTH = 2;
/**
 * A chunk may always have this many tokens, and pairs of tokens that attend to each other, even if none so large was
 * seen.
 */
const SMALL_TOKENS = 256;
const SMALL_PAIRS = 2 ** 20;
/** A chunk may always have this many tokens whose logits are returned, even if none so large was seen. */
const SMALL_RETURNED = 16;
/**
 * A context that runs with no other request may take this many times as long: only a request that arrives meanwhile
 * would wait.
 */
const MAX_ALONE = 4;
/**
 * While sequences generate, chunks take at most this multiple of the time that those alone would: what a
 * token waits longer than usual is bounded too, where that leaves chunks of at least `least` milliseconds.
 */
const TIMES_GENERATION = 3;
/** Smallest chunk, in tokens, even if it takes longer than the bound. */
const FEWEST_TOKENS = 8;

/** A bound that is absent does not apply. */
export interface PaceBounds {
  /** Milliseconds between two tokens of a generating request. */
  maxInterTokenLatencyMs?: number | undefined;
  /** Milliseconds of an iteration for chunks that do not end their contexts: see OptionalParams.maxChunkMs. */
  chunkMs?: ChunkMs | undefined;
}

/**
 * Keeps iterations short while prompts come in, by how long recent iterations took. Two bounds:
 *
 * maxInterTokenLatencyMs: as long as something generates, an iteration gets only as many context tokens as it has time for.
 *
 *   bound    |- - - - - - - - - - - - - - - - - - - -|
 *   time     [ fixed | generation rows |  context     | usual error ]
 *                                        as many tokens as fit, at least one unit
 *
 * chunkMs: long contexts are cut so that each chunk takes no longer than `most`, whether anything generates or not, since a
 * request may arrive while the chunk runs. With sequences whose own part of an iteration is short, it takes
 * down to `least`: chunks of few tokens cost throughput, and the more sequences generate, the more of it.
 * Where an iteration takes longer than `most` without any chunk, as that of a large model does, since its
 * weights have to be read, chunks take as long as that: prompts have half of the time. Where there is no
 * other request at all, chunks may take MAX_ALONE times as long. The further a chunk is from its prompt's
 * beginning, the more its tokens attend to, and the fewer tokens it has; it always has at least
 * FEWEST_TOKENS.
 *
 *   prompt   [  chunk  |  chunk | chunk | chunk |...| c | c | c | c | c | c | c | c ]    each takes as long
 *
 * The bounds rest on predictions and are no promises: a machine that suddenly slows down exceeds them until the slower iterations
 * have been seen; and where the generation alone takes longer than the bound, prompts still come in by one unit an iteration.
 * Answers do not depend on the bounds, since they do not depend on how prompts are cut.
 */
export class ContextPace {
  readonly #bounds: PaceBounds;
  readonly #unit: number;
  readonly #estimator = new IterationCostEstimator();

  /** @param unit tokens of the smallest chunk that is worth an iteration, such as those of a block; a power of two */
  constructor(bounds: PaceBounds, unit: number) {
    this.#bounds = bounds;
    this.#unit = unit;
  }

  /** Records how long an iteration took. */
  note(work: IterationWork, ms: number): void {
    this.#estimator.note(work, ms);
  }

  /**
   * Most context tokens of the next iteration; Infinity where nothing generates and so no sequence waits for
   * a token. `scheduled` are the active requests that may run. `turns` is the number of micro-batches that
   * alternate: a request waits for each of them between two of its tokens.
   */
  mostContextTokens(
    active: readonly SchedulableRequest[],
    scheduled: readonly SchedulableRequest[],
    turns: number,
  ): number {
    const { maxInterTokenLatencyMs: boundMs } = this.#bounds;
    if (boundMs === undefined || !active.some(({ phase }) => phase === 'generation')) {
      return Number.POSITIVE_INFINITY;
    }
    const { cost } = this.#estimator;
    if (cost === null) return this.#unit;
    const generationRows = rowsOf(scheduled);
    let position = 0;
    let isReturned = false;
    for (const request of scheduled) {
      if (request.phase === 'generation') continue;
      // With several contexts, the one whose tokens attend to most counts.
      position = Math.max(position, request.contextPosition);
      isReturned ||= request.returnsContextRows ?? false;
    }
    const within = contextTokensWithin(boundMs / turns, cost, { generationRows, position, isReturned });
    const tokens = Math.min(within, MAX_GROWTH * cost.tokensSeen, mostReturned(isReturned, cost));
    return Math.max(this.#unit, tokens - (tokens % this.#unit));
  }

  /** Most milliseconds for a chunk of the next iteration, for longestChunk. The parameters are those of mostContextTokens. */
  chunkMs(
    active: readonly SchedulableRequest[],
    scheduled: readonly SchedulableRequest[],
    turns: number,
  ): number {
    const { chunkMs: bounds } = this.#bounds;
    if (bounds === undefined) return Number.POSITIVE_INFINITY;
    const { least, most } = bounds;
    const times = active.length === 1 ? MAX_ALONE : 1;
    const { cost } = this.#estimator;
    if (least === most || cost === null) return (times * most) / turns;
    const rows = rowsOf(scheduled);
    const usualMs = cost.fixedMs + cost.rowMs * rows;
    const bound = rows === 0 ? most : Math.min(most, Math.max(least, TIMES_GENERATION * usualMs));
    return (times * Math.max(bound, usualMs)) / turns;
  }

  /**
   * See Chunking.longestChunk. Only the chunk's own cost counts, not the iteration's other work.
   *
   * @param boundMs milliseconds of a chunk, by chunkMs; Infinity: no bound
   */
  longestChunk(request: SchedulableRequest, boundMs: number): number {
    if (boundMs === Number.POSITIVE_INFINITY) return boundMs;
    const { contextPosition: position, returnsContextRows: isReturned = false } = request;
    const { cost } = this.#estimator;
    if (cost === null) return this.#unit;
    // This bound needs no safety margin: chunks that usually take this long are right.
    const chunkOnly = { ...cost, fixedMs: 0, rowMs: 0, spread: 0 };
    const within = contextTokensWithin(boundMs, chunkOnly, {
      generationRows: 0,
      position,
      isReturned,
    });
    const mostTokens = Math.max(SMALL_TOKENS, MAX_GROWTH * cost.tokensSeen);
    const mostPairs = Math.max(SMALL_PAIRS, MAX_GROWTH * cost.pairsSeen);
    const mostBehind = mostPairs / Math.max(1, position);
    return this.#rounded(Math.min(within, mostTokens, mostBehind, mostReturned(isReturned, cost)));
  }

  /** Rounds down to whole units or, below one unit, to a unit halved as often as needed, at least FEWEST_TOKENS. */
  #rounded(tokens: number): number {
    if (tokens >= this.#unit) return tokens - (tokens % this.#unit);
    let part = this.#unit;
    while (part > tokens && part > FEWEST_TOKENS) part /= 2;
    return part;
  }
}

/** Rows of the sequences that generate. */
function rowsOf(scheduled: readonly SchedulableRequest[]): number {
  return scheduled.reduce(
    (rows, { phase, beamWidth, draftLength }) =>
      phase === 'generation' ? rows + beamWidth + draftLength : rows,
    0,
  );
}

/**
 * Most tokens of a context whose logits are returned. Their cost shows only once a first chunk of SMALL_RETURNED tokens
 * has run; a row of logits may cost as much as a hundred tokens of a small model with a large vocabulary.
 */
function mostReturned(isReturned: boolean, { returnedSeen }: IterationCost): number {
  return isReturned ? Math.max(SMALL_RETURNED, MAX_GROWTH * returnedSeen) : Number.POSITIVE_INFINITY;
}

/** Work of an iteration besides a chunk, and the chunk's place in its context. */
interface ChunkPlace {
  generationRows: number;
  position: number;
  /** True where the logits of the chunk's tokens are returned. */
  isReturned?: boolean;
}

/**
 * Context tokens from `position` on that an iteration with these generation rows has time for; may be
 * Infinity.
 */
export function contextTokensWithin(
  boundMs: number,
  { fixedMs, rowMs, tokenMs, pairMs, returnedMs, spread }: IterationCost,
  { generationRows, position, isReturned = false }: ChunkPlace,
): number {
  // Two usual errors of margin: without them every other iteration would exceed the bound.
  const leftMs = boundMs / (1 + 2 * spread) - fixedMs - rowMs * generationRows;
  if (leftMs <= 0) return 0;
  // Solves tokens * perToken + tokens^2 * pairMs / 2 = leftMs, in the form that also works for pairMs = 0.
  const perToken = tokenMs + (isReturned ? returnedMs : 0) + pairMs * position;
  const root = Math.sqrt(perToken * perToken + 2 * pairMs * leftMs);
  return perToken + root === 0 ? Number.POSITIVE_INFINITY : Math.floor((2 * leftMs) / (perToken + root));
}
