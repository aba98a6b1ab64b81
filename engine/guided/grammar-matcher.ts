import type { Automaton } from './automaton.js';
import { GuideError } from './grammar.js';

/** Most places of a grammar that a text may be in at once; more come of grammars that read a text in very many ways. */
export const MAX_PLACES = 4096;
/** Sets of places that are remembered with what follows them: some 2 KiB each. */
const MAX_REMEMBERED = 20_000;

/** All places of a grammar that a text can have led to, and the sets that one more byte leads to. */
export class Places {
  /** Pairs (state, stack), each state one that takes a byte; sorted. */
  readonly pairs: readonly number[];
  /** The text may end here. */
  readonly isAccepting: boolean;
  /** By byte, once it was asked for: the places behind it; null: the byte does not fit. */
  next: (Places | null)[] | null = null;
  /** Tokens that fit here, as TokenMasks has them, once they were asked for; without those that end a text. */
  mask: Int32Array | null = null;
  /** Tokens of the text that has to follow, once they were asked for. */
  forced: Int32Array | null = null;
  /** What `forcedBehind` says of the tokens that fit here, once it was asked. */
  forcedBehind: Int32Array | null = null;

  constructor(pairs: readonly number[], isAccepting: boolean) {
    this.pairs = pairs;
    this.isAccepting = isAccepting;
  }
}

/** What a grammar has to say takes longer than it may. */
export class GuideTimeoutError extends GuideError {
  override name = 'GuideTimeoutError';
}

/**
 * Follows texts through a grammar byte by byte. Sets of places are made when a text first leads to them, and remembered
 * for all texts: in effect a deterministic automaton, of which only what is used exists.
 *
 * A place is a state and the stack of states to return to; stacks that are alike are one (a number). A rule that is
 * called last in a rule returns to where that one would, so that lists written as a recursion need no deeper stack.
 */
export class GrammarMatcher {
  readonly start: Places;
  readonly #automaton: Automaton;
  /** Stack s is the state #returnTo[s] on top of the stack #below[s]; stack 0 is empty. */
  readonly #returnTo: number[] = [-1];
  readonly #below: number[] = [-1];
  readonly #stacks = new Map<number, number>();
  readonly #known = new Map<string, Places>();
  /** performance.now() until which it may compute. */
  #deadlineMs = Number.POSITIVE_INFINITY;

  constructor(automaton: Automaton) {
    this.#automaton = automaton;
    this.start = this.#placesFrom([automaton.start, 0]);
  }

  /** Whatever is asked for from now on throws a GuideTimeoutError once this moment of performance.now() has passed. */
  limitUntil(deadlineMs: number): void {
    this.#deadlineMs = deadlineMs;
  }

  /** The places behind these bytes; null where they do not fit. */
  follow(from: Places, bytes: Uint8Array): Places | null {
    let places: Places | null = from;
    for (let i = 0; i < bytes.length && places !== null; i++) places = this.nextOf(places)[bytes[i]!]!;
    return places;
  }

  /** By byte, the places behind it or null. */
  nextOf(places: Places): readonly (Places | null)[] {
    if (places.next !== null) return places.next;
    if (performance.now() > this.#deadlineMs) {
      throw new GuideTimeoutError('The guide is so ambiguous or so large that following it takes too long.');
    }
    places.next = this.#computeNext(places);
    return places.next;
  }

  #computeNext({ pairs }: Places): (Places | null)[] {
    const { states } = this.#automaton;
    const next = new Array<Places | null>(256).fill(null);
    // Bytes between two borders lead to the same places.
    const borders = new Set<number>();
    for (let i = 0; i < pairs.length; i += 2) {
      const { bytes } = states[pairs[i]!]!;
      for (let k = 0; k < bytes.length; k += 3) borders.add(bytes[k]!).add(bytes[k + 1]! + 1);
    }
    const sorted = [...borders].sort((a, b) => a - b);
    for (let b = 0; b + 1 < sorted.length; b++) {
      const low = sorted[b]!;
      const targets: number[] = [];
      for (let i = 0; i < pairs.length; i += 2) {
        const { bytes } = states[pairs[i]!]!;
        for (let k = 0; k < bytes.length; k += 3) {
          if (bytes[k]! <= low && low <= bytes[k + 1]!) targets.push(bytes[k + 2]!, pairs[i + 1]!);
        }
      }
      if (targets.length > 0) next.fill(this.#placesFrom(targets), low, sorted[b + 1]!);
    }
    return next;
  }

  /** The places that are reached from these pairs (state, stack) without a byte. */
  #placesFrom(targets: readonly number[]): Places {
    const { states } = this.#automaton;
    const seen = new Set<number>();
    const found: number[] = [];
    const waiting: number[] = [];
    let isAccepting = false;
    const add = (state: number, stack: number): void => {
      const key = stack * STACK_FACTOR + state;
      if (seen.has(key)) return;
      seen.add(key);
      if (seen.size > MAX_PLACES) {
        throw new GuideError(
          `The guide is too ambiguous: a text can be read in more than ${MAX_PLACES} ways at once.`,
        );
      }
      waiting.push(state, stack);
    };
    for (let i = 0; i < targets.length; i += 2) add(targets[i]!, targets[i + 1]!);
    while (waiting.length > 0) {
      const stack = waiting.pop()!;
      const state = waiting.pop()!;
      const { bytes, empty, calls } = states[state]!;
      if (bytes.length > 0) found.push(stack * STACK_FACTOR + state);
      for (const target of empty) add(target, stack);
      for (let i = 0; i < calls.length; i += 2) add(calls[i]!, this.#push(calls[i + 1]!, stack));
      if (!this.#automaton.isEnd(state)) continue;
      if (stack === 0) isAccepting = true;
      else add(this.#returnTo[stack]!, this.#below[stack]!);
    }
    found.sort((a, b) => a - b);
    return this.#remembered(found, isAccepting);
  }

  #push(state: number, below: number): number {
    if (this.#automaton.isEnd(state)) return below;
    const key = below * STACK_FACTOR + state;
    let stack = this.#stacks.get(key);
    if (stack === undefined) {
      stack = this.#returnTo.push(state) - 1;
      this.#below.push(below);
      this.#stacks.set(key, stack);
    }
    return stack;
  }

  #remembered(keys: readonly number[], isAccepting: boolean): Places {
    const name = `${isAccepting ? '+' : '-'}${keys.join()}`;
    const known = this.#known.get(name);
    if (known !== undefined) return known;
    if (this.#known.size >= MAX_REMEMBERED) this.#forget();
    const pairs = keys.flatMap((key) => [key % STACK_FACTOR, Math.floor(key / STACK_FACTOR)]);
    const places = new Places(pairs, isAccepting);
    this.#known.set(name, places);
    return places;
  }

  /** Texts that are under way keep their places; these are made again when they come up again. */
  #forget(): void {
    for (const places of this.#known.values()) {
      places.next = null;
      places.mask = null;
      places.forced = null;
      places.forcedBehind = null;
    }
    this.#known.clear();
  }
}

/** Above any number of states. */
const STACK_FACTOR = 2 ** 20;
