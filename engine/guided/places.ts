import type { ByteClasses } from './byte-classes.js';
import type { GuideBudgetError } from './guide-budget.js';

/** Where a byte leads, from some places. */
export class Step {
  readonly places: Places;
  /** What it costs to find, in places; the same whoever finds it. */
  readonly cost: number;
  /** The walk that counted it last: see MaskWalk. */
  walk = 0;

  constructor(places: Places, cost: number) {
    this.places = places;
    this.cost = cost;
  }
}

/** All places of a grammar that a text can have led to, and the sets that one more byte leads to. */
export class Places {
  /** Pairs (state, stack), each state one that takes a byte; sorted by stack and state. */
  pairs: readonly number[];
  /** The text may end here. */
  readonly isAccepting: boolean;
  /** Which bytes can be told apart here, once a byte was asked for. */
  classes: ByteClasses | null = null;
  /** Where each class of bytes leads, once it was asked for; null: the byte does not fit. */
  steps: (Step | null | undefined)[] = NO_STEPS;
  /** Tokens that fit here, as TokenMasks has them, once they were asked for; without those that end a text. */
  mask: Int32Array | null = null;
  /** Why there can be no mask. */
  failure: GuideBudgetError | null = null;
  /** Tokens of the text that has to follow, once they were asked for. */
  forced: Int32Array | null = null;
  /** What `forcedBehind` says of the tokens that fit here, once it was asked. */
  forcedBehind: Int32Array | null = null;
  /** The next of those with the same hash. */
  sameHash: Places | null = null;

  constructor(pairs: readonly number[], isAccepting: boolean) {
    this.pairs = pairs;
    this.isAccepting = isAccepting;
  }

  /** Forgets all that can be made again. `failure` stays: it is a word, and would be the same one. */
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
