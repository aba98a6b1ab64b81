const NONE = -1;
const ROOT = 0;

/**
 * All stop strings of a request as one automaton (Aho-Corasick over UTF-16 units). It can follow any number of texts,
 * each of which needs only the number of its state.
 *
 * A state stands for a beginning of a stop string. Its children are a list of siblings and not a map: two strings part
 * at one place at most, so all lists together have no more forks than there are strings, and a state takes 22 bytes.
 *
 *   "ab", "ac"      0 -a-> 1 -b-> 2 (stop 0)
 *                          |
 *                          +-c-> 3 (stop 1)      child[1] = 3, sibling[3] = 2
 */
export class StopAutomaton {
  /** Number of states; the first, 0, stands for the empty text. */
  readonly numStates: number;
  readonly #unit: Uint16Array;
  readonly #child: Int32Array;
  readonly #sibling: Int32Array;
  /** State of the longest proper end of a state's text that also begins a stop string. */
  readonly #fallback: Int32Array;
  readonly #depth: Int32Array;
  /** Index of the longest stop string at the end of a state's text, of equal ones the first; -1: none. */
  readonly #stop: Int32Array;
  readonly #stops: readonly string[];

  /** @throws RangeError for an empty stop string. */
  constructor(stops: readonly string[]) {
    const empty = stops.indexOf('');
    if (empty >= 0) throw new RangeError(`Stop string ${empty} is empty; it would end every answer.`);
    this.#stops = [...stops];
    const most = stops.reduce((sum, stop) => sum + stop.length, 1);
    this.#unit = new Uint16Array(most);
    this.#child = new Int32Array(most).fill(NONE);
    this.#sibling = new Int32Array(most).fill(NONE);
    this.#fallback = new Int32Array(most);
    this.#depth = new Int32Array(most);
    this.#stop = new Int32Array(most).fill(NONE);
    this.numStates = this.#addStops();
    this.#setFallbacks();
  }

  /** State after one more unit. */
  step(state: number, unit: number): number {
    let from = state;
    for (;;) {
      const next = this.#childOf(from, unit);
      if (next !== NONE) return next;
      if (from === ROOT) return ROOT;
      from = this.#fallback[from]!;
    }
  }

  /** Number of UTF-16 units at the end of the text that could still become a stop string. */
  depthOf(state: number): number {
    return this.#depth[state]!;
  }

  /** Index of the stop string at the end of the text, the longest of several; -1: none. */
  stopOf(state: number): number {
    return this.#stop[state]!;
  }

  /** Length of a stop string, in UTF-16 units. */
  lengthOf(stop: number): number {
    return this.#stops[stop]!.length;
  }

  #childOf(state: number, unit: number): number {
    let child = this.#child[state]!;
    while (child !== NONE && this.#unit[child] !== unit) child = this.#sibling[child]!;
    return child;
  }

  #addStops(): number {
    let count = 1;
    for (const [index, stop] of this.#stops.entries()) {
      let state = ROOT;
      for (let i = 0; i < stop.length; i++) {
        const unit = stop.charCodeAt(i);
        let next = this.#childOf(state, unit);
        if (next === NONE) {
          next = count++;
          this.#unit[next] = unit;
          this.#depth[next] = i + 1;
          this.#sibling[next] = this.#child[state]!;
          this.#child[state] = next;
        }
        state = next;
      }
      if (this.#stop[state] === NONE) this.#stop[state] = index;
    }
    return count;
  }

  /** Sets fallbacks, breadth first: a state's fallback is shorter than the state, so it is known by then. */
  #setFallbacks(): void {
    const queue = new Int32Array(this.numStates);
    let end = 1;
    for (let at = 0; at < end; at++) {
      const state = queue[at]!;
      for (let child = this.#child[state]!; child !== NONE; child = this.#sibling[child]!) {
        const fallback = state === ROOT ? ROOT : this.step(this.#fallback[state]!, this.#unit[child]!);
        this.#fallback[child] = fallback;
        if (this.#stop[child] === NONE) this.#stop[child] = this.#stop[fallback]!;
        queue[end++] = child;
      }
    }
  }
}
