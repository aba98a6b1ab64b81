import type { Places } from './places.js';

/** Greater than any number of states. */
const STACK_FACTOR = 2 ** 20;
const BYTES_OF_STACK = 80;

/** Stacks of states to return to. Equal stacks share one number; stack 0 is empty. */
export class Stacks {
  /** Stack s is the state #returnTo[s] on top of the stack #below[s]. */
  #returnTo: number[] = [-1];
  #below: number[] = [-1];
  readonly #known = new Map<number, number>();

  returnTo(stack: number): number {
    return this.#returnTo[stack]!;
  }

  below(stack: number): number {
    return this.#below[stack]!;
  }

  push(state: number, below: number): number {
    const key = below * STACK_FACTOR + state;
    let stack = this.#known.get(key);
    if (stack === undefined) {
      stack = this.#returnTo.push(state) - 1;
      this.#below.push(below);
      this.#known.set(key, stack);
    }
    return stack;
  }

  /** Bytes of memory that they take, roughly. */
  get size(): number {
    return BYTES_OF_STACK * this.#below.length;
  }

  /** Forgets all stacks except those of these places, whose numbers change but keep their order. */
  keep(all: Iterable<Places>): void {
    const [returnTo, below] = [this.#returnTo, this.#below];
    const used = new Set<number>();
    for (const { pairs } of all) {
      for (let i = 1; i < pairs.length; i += 2) {
        for (let stack = pairs[i]!; stack > 0 && !used.has(stack); stack = below[stack]!) used.add(stack);
      }
    }
    const renamed = new Map([[0, 0]]);
    this.#returnTo = [-1];
    this.#below = [-1];
    this.#known.clear();
    // In this order the stack below each has already been renamed, since it was made before.
    for (const stack of [...used].sort((a, b) => a - b)) {
      renamed.set(stack, this.push(returnTo[stack]!, renamed.get(below[stack]!)!));
    }
    for (const places of all) {
      places.pairs = places.pairs.map((value, i) => (i % 2 === 0 ? value : renamed.get(value)!));
    }
  }
}
