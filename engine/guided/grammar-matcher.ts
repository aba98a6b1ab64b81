import { SkeinError } from '../../base/skein-error.js';
import { type Automaton, bytesOfAutomaton, isEnd } from './automaton.js';
import { StateBytes } from './byte-classes.js';
import { MAX_PLACES, STEP_COST, tooManyPlaces } from './guide-budget.js';
import { Places, Step } from './places.js';
import { Stacks } from './stacks.js';
import type { MaskWalk } from './token-mask.js';

/** Greater than any number of states. */
const STACK_FACTOR = 2 ** 20;
/** Estimated bytes of a set of places and of the step to it, besides those of each place. */
const BYTES_OF_SET = 320;
const BYTES_OF_PLACE = 16;

/** A search would cost more than the limit that its caller set: see `limited`. The guide is not at fault. */
export class SearchLimitError extends SkeinError {
  override name = 'SearchLimitError';
  override readonly code = 'SKEIN_GUIDE_SEARCH_LIMIT';
}

/**
 * Follows texts through a grammar byte by byte. Sets of places are made when a text first leads to them, and remembered
 * for all texts: in effect a deterministic automaton, of which only the used part exists.
 *
 * A place is a state and the stack of states to return to; equal stacks share one number. A rule that is called last in
 * another rule returns directly to that rule's caller, so that lists written as a recursion need no deeper stack.
 */
export class GrammarMatcher {
  readonly start: Places;
  /** Users that stand at places of the grammar; `forget` keeps these places. */
  readonly users = new Set<{ readonly standingAt: Iterable<Places> }>();
  /** The mask that is being made; everybody who needs one advances this walk; null: none. */
  walk: MaskWalk | null = null;
  /** Number of times that it has forgotten. */
  generation = 0;
  readonly #automaton: Automaton;
  readonly #bytesOfStates: StateBytes;
  /** 1 for each state that ends its rule. */
  readonly #ends: Uint8Array;
  readonly #stacks = new Stacks();
  /** Known sets of places, by their hash. */
  readonly #known = new Map<number, Places>();
  /** Marks the states that the present search has reached with its initial stack: they have the search's number. */
  readonly #marks: Int32Array;
  #search = 0;
  readonly #sizeOfTables: number;
  #ownSize = 0;
  #spent = 0;
  #limit = Number.POSITIVE_INFINITY;

  /** @throws GuideBudgetError if a text could begin in too many ways */
  constructor(automaton: Automaton) {
    this.#automaton = automaton;
    this.#bytesOfStates = new StateBytes(automaton);
    this.#ends = Uint8Array.from({ length: automaton.numStates }, (_, state) =>
      isEnd(automaton, state) ? 1 : 0,
    );
    this.#marks = new Int32Array(automaton.numStates);
    this.#sizeOfTables = bytesOfAutomaton(automaton) + 5 * automaton.numStates;
    this.start = this.#placesFrom([automaton.start, 0]).places;
  }

  /** Bytes of memory that its automaton takes, roughly. */
  get sizeOfAutomaton(): number {
    return this.#sizeOfTables + this.#bytesOfStates.size;
  }

  /** Bytes of memory that the found places take, roughly. */
  get sizeOfSets(): number {
    return this.#ownSize + this.#stacks.size;
  }

  /** Cost of all steps found so far. */
  get work(): number {
    return this.#spent;
  }

  /** Counts bytes that are stored along with its sets of places, such as masks. */
  noteBytes(bytes: number): void {
    this.#ownSize += bytes;
  }

  /** Runs `compute`; throws a SearchLimitError once it has found steps of this total cost. */
  limited<T>(cost: number, compute: () => T): T {
    this.#limit = this.#spent + cost;
    try {
      return compute();
    } finally {
      this.#limit = Number.POSITIVE_INFINITY;
    }
  }

  /** The places after these bytes; null if the bytes do not fit. */
  follow(from: Places, bytes: Uint8Array): Places | null {
    let places: Places = from;
    for (let i = 0; i < bytes.length; i++) {
      const step = this.step(places, bytes[i]!);
      if (step === null) return null;
      places = step.places;
    }
    return places;
  }

  /** The step that the byte takes; null: the byte does not fit. @throws GuideBudgetError */
  step(places: Places, byte: number): Step | null {
    if (places.classes === null) this.#open(places);
    const { classOf, byteOf } = places.classes!;
    const kind = classOf[byte]!;
    let step = places.steps[kind];
    if (step === undefined) {
      step = this.#find(places, byteOf[kind]!);
      places.steps[kind] = step;
    }
    return step;
  }

  /** True if the step of this byte is already known. */
  knows(places: Places, byte: number): boolean {
    return places.classes !== null && places.steps[places.classes.classOf[byte]!] !== undefined;
  }

  fits(places: Places, byte: number): boolean {
    if (places.classes === null) this.#open(places);
    return places.classes!.classOf[byte] !== 0;
  }

  /** The only byte that may come next; -1 if there are several or none. */
  onlyByte(places: Places): number {
    if (places.classes === null) this.#open(places);
    const { classOf, byteOf } = places.classes!;
    if (byteOf.length !== 2) return -1;
    const byte = byteOf[1]!;
    return classOf[byte + 1] === 1 ? -1 : byte;
  }

  /**
   * Forgets everything found except the sets at which its users stand; others must not be held any longer. Forgotten places
   * are found again when needed, at the same cost. Not to be called while a mask is being made.
   */
  forget(): void {
    const all = new Set([this.start, ...[...this.users].flatMap(({ standingAt }) => [...standingAt])]);
    this.generation++;
    for (const first of this.#known.values()) {
      let places: Places | null = first;
      while (places !== null) {
        const next: Places | null = places.sameHash;
        places.forget();
        places = next;
      }
    }
    this.#known.clear();
    this.#stacks.keep(all);
    this.#ownSize = 0;
    for (const places of all) this.#remember(places);
  }

  #open(places: Places): void {
    places.classes = this.#bytesOfStates.classesOf(places.pairs);
    places.steps = new Array<Step | null | undefined>(places.classes.byteOf.length).fill(undefined);
    places.steps[0] = null;
    this.#ownSize += 16 + 8 * places.steps.length;
  }

  #find({ pairs }: Places, byte: number): Step {
    if (this.#spent > this.#limit) throw new SearchLimitError();
    const { start, target } = this.#automaton.bytes;
    const targets: number[] = [];
    for (let i = 0; i < pairs.length; i += 2) {
      const state = pairs[i]!;
      const first = start[state]!;
      for (const way of this.#bytesOfStates.waysOf(state, byte))
        targets.push(target[first + way]!, pairs[i + 1]!);
    }
    const { places, seen } = this.#placesFrom(targets);
    const cost = STEP_COST + seen + (pairs.length >> 3);
    this.#spent += cost;
    return new Step(places, cost);
  }

  /** Places that are reached from these pairs (state, stack) without a byte; `seen`: number of pairs examined. */
  #placesFrom(targets: readonly number[]): { places: Places; seen: number } {
    const { bytes, empty, calls } = this.#automaton;
    const ends = this.#ends;
    const marks = this.#marks;
    const search = ++this.#search;
    const mainStack = targets[1]!;
    const others = new Set<number>();
    const found: number[] = [];
    const waiting: number[] = [];
    let isAccepting = false;
    let seen = 0;
    const add = (state: number, stack: number): void => {
      if (stack === mainStack) {
        if (marks[state] === search) return;
        marks[state] = search;
      } else {
        const key = stack * STACK_FACTOR + state;
        if (others.has(key)) return;
        others.add(key);
      }
      if (++seen > MAX_PLACES) throw tooManyPlaces();
      waiting.push(state, stack);
    };
    for (let i = 0; i < targets.length; i += 2) add(targets[i]!, targets[i + 1]!);
    while (waiting.length > 0) {
      const stack = waiting.pop()!;
      const state = waiting.pop()!;
      if (bytes.start[state]! < bytes.start[state + 1]!) found.push(stack * STACK_FACTOR + state);
      for (let i = empty.start[state]!; i < empty.start[state + 1]!; i++) add(empty.target[i]!, stack);
      for (let i = calls.start[state]!; i < calls.start[state + 1]!; i++) {
        const back = calls.back[i]!;
        add(calls.target[i]!, ends[back] === 1 ? stack : this.#stacks.push(back, stack));
      }
      if (ends[state] === 0) continue;
      if (stack === 0) isAccepting = true;
      else add(this.#stacks.returnTo(stack), this.#stacks.below(stack));
    }
    return { places: this.#remembered(sorted(found), isAccepting), seen };
  }

  #remembered(keys: ArrayLike<number>, isAccepting: boolean): Places {
    const pairs = new Array<number>(2 * keys.length);
    for (let i = 0; i < keys.length; i++) {
      const stack = Math.floor(keys[i]! / STACK_FACTOR);
      pairs[2 * i] = keys[i]! - stack * STACK_FACTOR;
      pairs[2 * i + 1] = stack;
    }
    for (
      let known = this.#known.get(hashOf(pairs, isAccepting)) ?? null;
      known !== null;
      known = known.sameHash
    ) {
      if (known.isAccepting === isAccepting && areEqual(known.pairs, pairs)) return known;
    }
    const places = new Places(pairs, isAccepting);
    this.#remember(places);
    return places;
  }

  #remember(places: Places): void {
    const hash = hashOf(places.pairs, places.isAccepting);
    places.sameHash = this.#known.get(hash) ?? null;
    this.#known.set(hash, places);
    this.#ownSize += BYTES_OF_SET + BYTES_OF_PLACE * (places.pairs.length >> 1);
  }
}

function sorted(keys: number[]): ArrayLike<number> {
  if (keys.length > 32) return Float64Array.from(keys).sort();
  return keys.sort((a, b) => a - b);
}

function hashOf(pairs: readonly number[], isAccepting: boolean): number {
  let hash = isAccepting ? 1 : 0;
  for (let i = 0; i < pairs.length; i++) hash = (Math.imul(hash, 0x01000193) ^ pairs[i]!) + (hash >>> 15);
  return hash | 0;
}

function areEqual(a: readonly number[], b: readonly number[]): boolean {
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false;
  return true;
}
