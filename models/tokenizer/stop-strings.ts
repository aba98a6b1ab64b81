import { StopAutomaton } from './stop-automaton.js';

export interface StopPush {
  /** Text that may be sent now. */
  emit: string;
  /** Index of the stop string that ended the text; null while it goes on. */
  matched: number | null;
}

/** Ends a text at its first stop string. */
export interface StopFinder {
  /** Takes text; after a match all further text is dropped. */
  push(text: string): StopPush;
  /** Ends the text: returns what was held back. */
  end(): StopPush;
}

export interface StopStringOptions {
  /** Keeps the stop string in the answer. Default false. */
  includeStop?: boolean;
}

/** Stop strings of one request, for all of its texts: the automaton is made once, when the first text comes. */
export class StopStrings {
  readonly texts: readonly string[];
  #automaton: StopAutomaton | null = null;

  /** @param texts the stop strings; the list is copied */
  constructor(texts: readonly string[]) {
    this.texts = [...texts];
  }

  static of(stops: StopStrings | readonly string[]): StopStrings {
    return stops instanceof StopStrings ? stops : new StopStrings(stops);
  }

  /** The automaton, made at the first call. @throws RangeError for an empty stop string. */
  get automaton(): StopAutomaton {
    this.#automaton ??= new StopAutomaton(this.texts);
    return this.#automaton;
  }
}

/**
 * Ends a text at its first stop string and never lets the beginning of one slip out: the longest end of the text that
 * could still become a stop string is held back. The depth of the automaton's state is exactly the length to hold back.
 *
 *   stops: "\n\nUser"           text "Hi.\n\nU"  ->  emit "Hi.", hold "\n\nU"
 *
 * The match that is complete first wins, as it does where tokens are generated one by one. Of several that end at the
 * same place, the longest (it leaves the least text); of equal ones, the first in the list. So the result does not
 * depend on how the text was cut into pieces.
 */
export class StopStringMatcher implements StopFinder {
  readonly #automaton: StopAutomaton;
  readonly #includeStop: boolean;
  #state = 0;
  #held = '';
  #matched: number | null = null;

  /** @throws RangeError for an empty stop string. */
  constructor(stops: StopStrings | readonly string[], options: StopStringOptions = {}) {
    this.#automaton = StopStrings.of(stops).automaton;
    this.#includeStop = options.includeStop ?? false;
  }

  push(text: string): StopPush {
    if (this.#matched !== null) return { emit: '', matched: this.#matched };
    const automaton = this.#automaton;
    for (let i = 0; i < text.length; i++) {
      this.#state = automaton.step(this.#state, text.charCodeAt(i));
      const stop = automaton.stopOf(this.#state);
      if (stop < 0) continue;
      const seen = this.#held + text.slice(0, i + 1);
      this.#matched = stop;
      this.#held = '';
      return { emit: this.#includeStop ? seen : seen.slice(0, -automaton.lengthOf(stop)), matched: stop };
    }
    const seen = this.#held + text;
    const ready = seen.length - automaton.depthOf(this.#state);
    this.#held = seen.slice(ready);
    return { emit: seen.slice(0, ready), matched: null };
  }

  end(): StopPush {
    const held = this.#held;
    this.#held = '';
    this.#state = 0;
    return { emit: held, matched: this.#matched };
  }
}
