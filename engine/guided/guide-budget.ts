import { GuideError } from './grammar.js';

/**
 * What following a guide may cost, counted in places of its automaton that are made or looked at, never in time: what a
 * guide and a text cost depends on nothing else, so that the same request has the same answer, or the same refusal, on any
 * machine at any load.
 */

/** Steps to a set of places cost this much beside the places themselves: what they take of time and memory at least. */
export const STEP_COST = 16;
/** Most that the mask of one place in a text may cost. Schemas and tools take some thousands; this is some 50 ms. */
export const MAX_MASK_COST = 500_000;
/** Most places that following one answer may lead through, all of its bytes together. */
export const MAX_FOLLOW_COST = 32_000_000;
/** Most places of a grammar that a text may be in at once; more come of grammars that read a text in very many ways. */
export const MAX_PLACES = 4096;

/** A guide takes more than following it may cost. */
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
