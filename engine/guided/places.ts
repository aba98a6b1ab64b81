import type { ByteClasses } from './byte-classes.js';
import type { GuideBudgetError } from './guide-budget.js';

/** A step by one byte from some places to others. */
export class Step {
  readonly places: Places;
  /** Cost of finding the step, in places; always the same, whichever job finds it. */
  readonly cost: number;
  /** Number of the walk that counted this step last: see MaskWalk. */
  walk = 0;

  constructor(places: Places, cost: number) {
    this.places = places;
    this.cost = cost;
  }
}

/** All places of a grammar that a text can have led to, and the steps to the sets after one more byte. */
export class Places {
  /** Pairs (state, stack), each state one that takes a byte; sorted by stack and state. */
  pairs: readonly number[];
  /** True if the text may end here. */
  readonly isAccepting: boolean;
  /** Classes of bytes that differ here, once a byte was asked for. */
  classes: ByteClasses | null = null;
  /** Step of each class of bytes, once asked for; null: the byte does not fit. */
  steps: (Step | null | undefined)[] = NO_STEPS;
  /** Mask of the tokens that fit here, in the form of TokenMasks, once asked for; without those that end a text. */
  mask: Int32Array | null = null;
  /** Reason why there can be no mask. */
  failure: GuideBudgetError | null = null;
  /** Tokens of the text that has to follow, once asked for. */
  forced: Int32Array | null = null;
  /** Result of `forcedBehind` for these places, once asked for. */
  forcedBehind: Int32Array | null = null;
  /** The next set of places with the same hash. */
  sameHash: Places | null = null;

  constructor(pairs: readonly number[], isAccepting: boolean) {
    this.pairs = pairs;
    this.isAccepting = isAccepting;
  }

  /** Forgets everything that can be made again. `failure` stays: it is small, and would be the same again. */
  forget(): void {
    this.classes = null;
    this.steps = NO_STEPS;
    this.mask = null;
    this.forced = null;
    this.forcedBehind = null;
    this.sameHash = null;
  }
}

const NO_STEPS: (Step | null | undefined)[] = [];
