import { checkedGrammar } from './check-grammar.js';
import { type Expr, type Grammar, GuideError } from './grammar.js';
import { specialBytes } from './special-bytes.js';
import { encoded, utf8Ranges } from './utf8-ranges.js';

/** Most states of an automaton: some 100 bytes each. */
export const MAX_STATES = 100_000;

/** What can be done in a state. A state with nothing is the end of its rule. */
export interface State {
  /** Triples (low, high, target): a byte from low to high leads to the state target. */
  bytes: number[];
  /** States that are reached without a byte. */
  empty: number[];
  /** Pairs (first state of a rule, state to go on from when the rule has ended). */
  calls: number[];
}

/**
 * A grammar as states over the bytes of UTF-8. Rules call each other, so a place in it is a state and a stack of states
 * to return to. Repetitions are written out.
 */
export class Automaton {
  readonly states: State[] = [];
  readonly start: number;
  readonly #ruleStarts = new Map<string, number>();

  /** @throws GuideError where the grammar is refused, or is larger than MAX_STATES. */
  constructor(unchecked: Grammar) {
    const grammar = checkedGrammar(unchecked);
    const ends = new Map<string, number>();
    for (const name of grammar.rules.keys()) {
      this.#ruleStarts.set(name, this.#newState());
      ends.set(name, this.#newState());
    }
    for (const [name, expr] of grammar.rules) this.#add(expr, this.#ruleStarts.get(name)!, ends.get(name)!);
    this.start = this.#ruleStarts.get(grammar.root)!;
  }

  /** Nothing follows: the rule has ended. */
  isEnd(state: number): boolean {
    const { bytes, empty, calls } = this.states[state]!;
    return bytes.length === 0 && empty.length === 0 && calls.length === 0;
  }

  #newState(): number {
    if (this.states.length === MAX_STATES) {
      throw new GuideError(
        `The guide is too large: written out, its repetitions included, it has more than ${MAX_STATES} states.`,
      );
    }
    return this.states.push({ bytes: [], empty: [], calls: [] }) - 1;
  }

  /** Lets the expression lead from one state to another. */
  #add(expr: Expr, from: number, to: number): void {
    switch (expr.kind) {
      case 'text':
        this.#addBytes(
          Array.from(Buffer.from(expr.text), (byte) => [byte, byte]),
          from,
          to,
        );
        break;
      case 'special':
        this.#addBytes(
          Array.from(specialBytes(expr.text), (byte) => [byte, byte]),
          from,
          to,
        );
        break;
      case 'chars':
        this.#addChars(expr.ranges, from, to);
        break;
      case 'rule':
        this.states[from]!.calls.push(this.#ruleStarts.get(expr.name)!, to);
        break;
      case 'alt':
        for (const item of expr.items) this.#add(item, from, to);
        break;
      case 'seq':
        this.#addSequence(expr.items, from, to);
        break;
      case 'repeat':
        this.#addRepeat(expr, from, to);
    }
  }

  #addBytes(bytes: readonly (readonly [number, number])[], from: number, to: number): void {
    if (bytes.length === 0) this.states[from]!.empty.push(to);
    let state = from;
    for (const [i, [low, high]] of bytes.entries()) {
      const next = i === bytes.length - 1 ? to : this.#newState();
      this.states[state]!.bytes.push(low, high, next);
      state = next;
    }
  }

  /** Sequences that begin with the same byte share it, and those with the same rest share that. */
  #addChars(ranges: readonly (readonly [number, number])[], from: number, to: number): void {
    const shared = new Map<string, number>();
    for (const [low, high] of ranges) {
      if (low === high) {
        this.#addShared(
          encoded(low).map((byte) => [byte, byte]),
          from,
          to,
          shared,
        );
      } else for (const bytes of utf8Ranges(low, high)) this.#addShared(bytes, from, to, shared);
    }
  }

  #addShared(
    bytes: readonly (readonly [number, number])[],
    from: number,
    to: number,
    shared: Map<string, number>,
  ): void {
    const [[low, high]] = bytes as [[number, number]];
    if (bytes.length === 1) {
      this.states[from]!.bytes.push(low, high, to);
      return;
    }
    const rest = bytes.slice(1);
    const key = rest.join();
    let next = shared.get(key);
    if (next === undefined) {
      next = this.#newState();
      shared.set(key, next);
      this.#addShared(rest, next, to, shared);
    }
    this.states[from]!.bytes.push(low, high, next);
  }

  #addSequence(items: readonly Expr[], from: number, to: number): void {
    if (items.length === 0) this.states[from]!.empty.push(to);
    let state = from;
    for (const [i, item] of items.entries()) {
      const next = i === items.length - 1 ? to : this.#newState();
      this.#add(item, state, next);
      state = next;
    }
  }

  /**
   *   {2,4}   from -item-> . -item-> . -item-> . -item-> to
   *                                  '----------'------> to
   *   {1,}    from -item-> loop -item-> loop, loop -> to
   */
  #addRepeat({ item, min, max }: Extract<Expr, { kind: 'repeat' }>, from: number, to: number): void {
    let state = from;
    // A state of its own: what leads back into a loop must not lead back into what surrounds it.
    const step = (): void => {
      const next = this.#newState();
      this.#add(item, state, next);
      state = next;
    };
    for (let i = 0; i < min; i++) step();
    if (max === null) {
      const loop = this.#newState();
      this.states[state]!.empty.push(loop);
      const back = this.#newState();
      this.#add(item, loop, back);
      this.states[back]!.empty.push(loop);
      state = loop;
    } else {
      for (let i = min; i < max; i++) {
        this.states[state]!.empty.push(to);
        step();
      }
    }
    this.states[state]!.empty.push(to);
  }
}
