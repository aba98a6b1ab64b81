import { type Args, Builtin, Callable, positional } from '../calls.js';
import { typeError } from '../errors.js';
import type { Rendering } from '../rendering.js';
import { equals } from '../values/compare.js';
import { itemsOf, notIterable } from '../values/iteration.js';
import { Undefined } from '../values/undefined.js';
import { Lazy, Tuple, type Value } from '../values/value.js';

/** The values of a loop, one by one. Those of a lazy value are computed when they are needed. */
export class LoopValues {
  #items: Value[];
  readonly #lazy: Lazy | null;
  #at = 0;

  constructor(value: Value, run: Rendering) {
    const items = itemsOf(value, run);
    if (items === null && !(value instanceof Lazy)) throw notIterable(value);
    this.#items = items ?? [];
    this.#lazy = items === null ? (value as Lazy) : null;
  }

  /** The next value, which is taken; undefined: there is none. */
  next(): Value | undefined {
    const value = this.peek();
    this.#at++;
    return value;
  }

  /** The next value; undefined: there is none. */
  peek(): Value | undefined {
    if (this.#lazy !== null && this.#at >= this.#items.length) {
      const value = this.#lazy.next();
      if (value !== undefined) this.#items.push(value);
    }
    return this.#items[this.#at];
  }

  /** Number of all values. */
  get length(): number {
    for (let value = this.#lazy?.next(); value !== undefined; value = this.#lazy?.next())
      this.#items.push(value);
    return this.#items.length;
  }
}

/** The variable `loop`. */
export class Loop extends Callable {
  override readonly typeName = 'LoopContext';
  readonly #values: LoopValues;
  readonly #depth0: number;
  readonly #recurse: ((run: Rendering, value: Value, depth0: number) => Value) | null;
  #index0 = -1;
  #current: Value | undefined;
  #previous: Value | undefined;
  #changed: Value[] | null = null;

  /** @param recurse runs the loop's body over other values; null: the loop is not recursive */
  constructor(
    values: LoopValues,
    recurse: ((run: Rendering, value: Value, depth0: number) => Value) | null = null,
    depth0 = 0,
  ) {
    super();
    this.#values = values;
    this.#recurse = recurse;
    this.#depth0 = depth0;
  }

  /** The value of the next round; undefined: there is none. */
  next(): Value | undefined {
    const value = this.#values.next();
    if (value === undefined) return undefined;
    this.#index0++;
    this.#previous = this.#current;
    this.#current = value;
    return value;
  }

  override attribute(name: string): Value | undefined {
    switch (name) {
      case 'index':
        return this.#index0 + 1;
      case 'index0':
        return this.#index0;
      case 'first':
        return this.#index0 === 0;
      case 'last':
        return this.#values.peek() === undefined;
      case 'length':
        return this.#values.length;
      case 'revindex':
        return this.#values.length - this.#index0;
      case 'revindex0':
        return this.#values.length - this.#index0 - 1;
      case 'depth':
        return this.#depth0 + 1;
      case 'depth0':
        return this.#depth0;
      case 'previtem':
        return this.#noItem(this.#previous, 'there is no previous item');
      case 'nextitem':
        return this.#noItem(this.#values.peek(), 'there is no next item');
      case 'cycle':
        return new Builtin('cycle', (_run, { values }) => this.#cycle(values));
      case 'changed':
        return new Builtin('changed', (run, { values }) => this.#hasChanged(values, run));
    }
    return undefined;
  }

  #noItem(value: Value | undefined, hint: string): Value {
    return value === undefined ? new Undefined({ hint }) : value;
  }

  #cycle(values: readonly Value[]): Value {
    if (values.length === 0) throw typeError('no items for cycling given');
    return values[this.#index0 % values.length]!;
  }

  #hasChanged(values: readonly Value[], run: Rendering): boolean {
    const before = this.#changed;
    const isSame = before !== null && equals(new Tuple(before), new Tuple([...values]), run);
    if (!isSame) this.#changed = [...values];
    return !isSame;
  }

  override call(run: Rendering, args: Args): Value {
    const [values] = positional('loop', args, 1);
    if (this.#recurse === null) {
      throw typeError("The loop must have the 'recursive' marker to be called recursively.");
    }
    return this.#recurse(run, values!, this.#depth0 + 1);
  }

  override repr(): string {
    return `<LoopContext ${this.#index0 + 1}/${this.#values.length}>`;
  }
}
