export interface StopPush {
  /** Text that may be sent now. */
  emit: string;
  /** Index of the stop string that ended the text; null while it goes on. */
  matched: number | null;
}

export interface StopStringOptions {
  /** The stop string itself is part of the answer. Default false. */
  includeStop?: boolean;
}

interface State {
  /** Length of the text that this state stands for: the longest end of the text that begins a stop string. */
  depth: number;
  next: Map<number, State>;
  /** The longest proper end of it that also begins a stop string. */
  fallback: State | null;
  /** The longest stop string that the text so far ends with. */
  stop: { index: number; length: number } | null;
}

/**
 * Ends a text at its first stop string and never lets the beginning of one slip out: the longest end of the text that
 * could still become a stop string is held back. An Aho-Corasick automaton over UTF-16 units; its depth is exactly the
 * length to hold back.
 *
 *   stops: "\n\nUser"           text "Hi.\n\nU"  ->  emit "Hi.", hold "\n\nU"
 *
 * The match that is complete first wins, as it does where tokens are generated one by one. Of several that end at the
 * same place, the longest (it leaves the least text); of equal ones, the first in the list. So the result does not
 * depend on how the text was cut into pieces.
 */
export class StopStringMatcher {
  readonly #root: State;
  readonly #includeStop: boolean;
  #state: State;
  #held = '';
  #matched: number | null = null;

  /** @throws RangeError for an empty stop string. */
  constructor(stops: readonly string[], options: StopStringOptions = {}) {
    this.#root = buildAutomaton(stops);
    this.#state = this.#root;
    this.#includeStop = options.includeStop ?? false;
  }

  /** After a match all further text is dropped. */
  push(text: string): StopPush {
    if (this.#matched !== null) return { emit: '', matched: this.#matched };
    for (let i = 0; i < text.length; i++) {
      this.#state = step(this.#root, this.#state, text.charCodeAt(i));
      const stop = this.#state.stop;
      if (stop === null) continue;
      const seen = this.#held + text.slice(0, i + 1);
      this.#matched = stop.index;
      this.#held = '';
      return { emit: this.#includeStop ? seen : seen.slice(0, -stop.length), matched: stop.index };
    }
    const seen = this.#held + text;
    const ready = seen.length - this.#state.depth;
    this.#held = seen.slice(ready);
    return { emit: seen.slice(0, ready), matched: null };
  }

  /** The end of the text: what was held back is text after all. */
  flush(): string {
    const held = this.#held;
    this.#held = '';
    this.#state = this.#root;
    return held;
  }
}

function newState(depth: number): State {
  return { depth, next: new Map(), fallback: null, stop: null };
}

function step(root: State, from: State, unit: number): State {
  for (let state: State | null = from; state !== null; state = state.fallback) {
    const next = state.next.get(unit);
    if (next !== undefined) return next;
  }
  return root;
}

function buildAutomaton(stops: readonly string[]): State {
  const root = newState(0);
  for (const [index, stop] of stops.entries()) {
    if (stop.length === 0) throw new RangeError(`Stop string ${index} is empty; it would end every answer.`);
    let state = root;
    for (let i = 0; i < stop.length; i++) {
      const unit = stop.charCodeAt(i);
      let next = state.next.get(unit);
      if (next === undefined) {
        next = newState(i + 1);
        state.next.set(unit, next);
      }
      state = next;
    }
    state.stop ??= { index, length: stop.length };
  }
  // Breadth first: a state's fallback is shorter than the state, so it is finished before.
  const queue = [root];
  for (let state = queue.shift(); state !== undefined; state = queue.shift()) {
    for (const [unit, next] of state.next) {
      next.fallback = state.fallback === null ? root : step(root, state.fallback, unit);
      next.stop ??= next.fallback.stop;
      queue.push(next);
    }
  }
  return root;
}
