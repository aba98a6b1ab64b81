import { GuideError } from './grammar.js';

/**
 * Limits on the cost of following a guide, counted in places of its automaton that are made or visited, never in time. The
 * cost depends only on the guide and the text, so that the same request has the same answer, or the same refusal, on any
 * machine at any load.
 */

/** Cost of a step to a set of places, in addition to the places themselves: at least its share of time and memory. */
export const STEP_COST = 16;
/** Most that the mask of one place in a text may cost. Schemas and tools take some thousands; this is some 50 ms. */
export const MAX_MASK_COST = 500_000;
/** Most places that following one answer may lead through, for all of its bytes together. */
export const MAX_FOLLOW_COST = 32_000_000;
/** Most places of a grammar that a text may be in at once; grammars that read a text in very many ways exceed it. */
export const MAX_PLACES = 4096;

/** Following a guide costs more than the limit. */
export class GuideBudgetError extends GuideError {
  override name = 'GuideBudgetError';
  override readonly code = 'SKEIN_GUIDE_BUDGET';
}

export function tooManyPlaces(): GuideBudgetError {
  return new GuideBudgetError(
    `The guide is too ambiguous: a text can be read in more than ${MAX_PLACES} ways at once.`,
  );
}

export function tooCostlyMask(most: number): GuideBudgetError {
  return new GuideBudgetError(
    `The guide is too ambiguous or too large: to say which tokens may come next takes more than ${most} steps.`,
  );
}

export function tooCostlyAnswer(): GuideBudgetError {
  return new GuideBudgetError(
    `The guide is too ambiguous or too large: following this answer takes more than ${MAX_FOLLOW_COST} steps.`,
  );
}
