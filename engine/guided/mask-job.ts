import { SkeinError } from '../../base/skein-error.js';
import type { FollowedGuide, FollowedSequence } from './followed-guide.js';
import { GuideBudgetError, MAX_FOLLOW_COST, STEP_COST, tooCostlyAnswer } from './guide-budget.js';
import { MAX_SETS_OF_GUIDE } from './kept-matchers.js';
import type { Places } from './places.js';
import { MaskWalk } from './token-mask.js';

/** Places at which forced tokens are to be found, for the token at a position of a sequence. */
export interface Ahead {
  guide: FollowedGuide;
  step: number;
  sequence: number;
  position: number;
  places: Places;
  /** The matcher's `generation` when this was noted: see GrammarMatcher.forget. */
  generation: number;
}

export interface MaskEntry {
  step: number;
  sequence: number;
  position: number;
  tokens: Int32Array;
  draft: Int32Array;
  jumps: boolean;
}

/** A token of a sequence does not follow the sequence's guide. */
export class StrayTokenError extends SkeinError {
  override name = 'StrayTokenError';
  override readonly code = 'SKEIN_GUIDE_STRAY_TOKEN';
  readonly token: number;
  /** Index of the token among the generated ones. */
  readonly place: number;

  constructor(token: number, place: number) {
    super(`Token ${token} does not follow the guide.`);
    this.token = token;
    this.place = place;
  }
}

/** Makes the masks that a sequence needs next: after its newest token, and after each token of its draft. */
export class MaskJob {
  readonly step: number;
  readonly sequence: number;
  /** True if the job makes the first masks of all sequences of a guide. */
  readonly isBeginning: boolean;
  readonly ahead: Ahead[] = [];
  readonly #guide: FollowedGuide;
  readonly #steps: Generator<void>;
  #fuel = 0;
  /** Places at which the job stands between two turns. */
  standingAt: Places;

  constructor(guide: FollowedGuide, entry: MaskEntry | null) {
    this.#guide = guide;
    this.isBeginning = entry === null;
    this.step = entry?.step ?? -1;
    this.sequence = entry?.sequence ?? guide.first;
    this.standingAt = guide.matcher.start;
    this.#steps = entry === null ? this.#begin() : this.#answer(entry);
  }

  static ofBeginning(guide: FollowedGuide): MaskJob {
    return new MaskJob(guide, null);
  }

  /**
   * Continues with work of this many places; with 0 only as long as no work is needed. True: all masks are
   * written. @throws GuideBudgetError
   */
  goOn(fuel: number): boolean {
    this.#fuel = fuel;
    return this.#steps.next().done === true;
  }

  *#begin(): Generator<void> {
    const { start } = this.#guide.matcher;
    yield* this.#makeMask(start);
    for (let row = 0; row < this.#guide.count; row++) this.#guide.write(start, row);
  }

  *#answer({ step, sequence, position, tokens, draft, jumps }: MaskEntry): Generator<void> {
    const guide = this.#guide;
    const { matcher } = guide;
    const row = sequence - guide.first;
    let here = this.#placeAt(sequence, position);
    for (const token of tokens) {
      const next = yield* this.#follow(here, token);
      if (next === null) throw new StrayTokenError(token, here.numTokens);
      here = next;
    }
    yield* this.#makeMask(here.places);
    guide.moveTo(sequence, here);
    guide.write(here.places, row);
    const note = ({ places, numTokens }: FollowedSequence) => {
      if (jumps)
        this.ahead.push({
          guide,
          step,
          sequence,
          position: numTokens,
          places,
          generation: matcher.generation,
        });
    };
    note(here);
    for (const [i, token] of draft.entries()) {
      const next = yield* this.#makeDraftMask(here, token);
      // After a draft token that does not follow the guide no token is allowed; the mask in front of it
      // already keeps it from being drawn.
      if (next === null) {
        for (let ahead = i; ahead < draft.length; ahead++) guide.writeNone(row + ahead + 1);
        return;
      }
      here = next;
      guide.write(here.places, row + i + 1);
      note(here);
    }
  }

  /** A draft is not part of the answer yet: if a mask after it costs too much, that is no reason to fail. */
  *#makeDraftMask(here: FollowedSequence, token: number): Generator<void, FollowedSequence | null> {
    try {
      const next = yield* this.#follow(here, token);
      if (next !== null) yield* this.#makeMask(next.places);
      return next;
    } catch (error) {
      if (error instanceof GuideBudgetError) return null;
      throw error;
    }
  }

  /** The state before the given tokens: after all earlier tokens, or at the beginning. */
  #placeAt(sequence: number, position: number): FollowedSequence {
    const here = this.#guide.at(sequence);
    if (position === here.numTokens) return here;
    if (position === 0) return this.#guide.beginning();
    throw new Error(`Sequence ${sequence} has ${here.numTokens} tokens, and goes on from token ${position}.`);
  }

  *#follow(here: FollowedSequence, token: number): Generator<void, FollowedSequence | null> {
    const { matcher, trie } = this.#guide;
    const bytes = trie.bytesOf(token);
    if (bytes === null) return null;
    let { places, cost } = here;
    for (const byte of bytes) {
      this.standingAt = places;
      if (!matcher.knows(places, byte)) while (this.#fuel <= 0) yield;
      const before = matcher.work;
      const step = matcher.step(places, byte);
      this.#fuel -= matcher.work - before;
      if (step === null) return null;
      cost += step.cost - STEP_COST;
      if (cost > MAX_FOLLOW_COST) throw tooCostlyAnswer();
      places = step.places;
    }
    return { places, numTokens: here.numTokens + 1, cost };
  }

  /**
   * Makes the mask of some places. A job that needs a mask of this grammar advances the walk that is under
   * way there, even if another job began it.
   */
  *#makeMask(places: Places): Generator<void> {
    const { matcher, trie } = this.#guide;
    this.standingAt = places;
    while (places.mask === null) {
      if (places.failure !== null) throw places.failure;
      while (this.#fuel <= 0) yield;
      if (matcher.walk === null) {
        if (matcher.sizeOfSets > MAX_SETS_OF_GUIDE) matcher.forget();
        matcher.walk = new MaskWalk(matcher, trie, places);
      }
      const { walk } = matcher;
      try {
        this.#fuel = walk.advance(this.#fuel);
        if (walk.places.mask !== null) matcher.walk = null;
      } catch (error) {
        matcher.walk = null;
        // An error in another sequence's mask is raised again when that sequence asks for it.
        if (walk.places === places) throw error;
      }
    }
  }
}
