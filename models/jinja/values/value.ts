import type { Dict } from './dict.js';

/**
 * A value of a template, as Python has it:
 *
 *   None  null        str   string                    list   Value[], which nothing changes
 *   bool  boolean     int   number or, beyond 2^53, bigint   float  Float
 *   all others are objects of classes that extend PyObject: Tuple, Dict, Range, Undefined, ...
 */
export type Value = null | boolean | number | bigint | string | Value[] | PyObject;

/** A value of a type that JavaScript does not have. */
export abstract class PyObject {
  /** Name of its type in Python's messages. */
  abstract readonly typeName: string;
  /** True where it is true in a condition. */
  get truth(): boolean {
    return true;
  }

  /** An attribute that is no method of its type; undefined: there is none of this name. */
  attribute(_name: string): Value | undefined {
    return undefined;
  }

  /** Its text in Python's repr, for what is no data. */
  repr(): string {
    return `<${this.typeName} object>`;
  }
}

/** A float: also where its value is whole, which a number alone would not say. */
export class Float extends PyObject {
  override readonly typeName = 'float';
  readonly number: number;

  constructor(number: number) {
    super();
    this.number = number;
  }

  override get truth(): boolean {
    return this.number !== 0;
  }

  override attribute(name: string): Value | undefined {
    return name === 'real' ? this : name === 'imag' ? new Float(0) : undefined;
  }
}

export class Tuple extends PyObject {
  override readonly typeName: string = 'tuple';
  readonly items: Value[];

  constructor(items: Value[]) {
    super();
    this.items = items;
  }

  override get truth(): boolean {
    return this.items.length > 0;
  }
}

/** A group of the filter groupby: a tuple whose parts have names. */
export class GroupTuple extends Tuple {
  override readonly typeName = '_GroupTuple';

  override attribute(name: string): Value | undefined {
    return name === 'grouper' ? this.items[0] : name === 'list' ? this.items[1] : undefined;
  }
}

/** Python's range: numbers that are computed when they are needed. */
export class Range extends PyObject {
  override readonly typeName = 'range';
  readonly start: number;
  readonly stop: number;
  readonly step: number;
  readonly length: number;

  constructor(start: number, stop: number, step: number) {
    super();
    this.start = start;
    this.stop = stop;
    this.step = step;
    this.length = Math.max(0, Math.ceil((stop - start) / step));
  }

  override get truth(): boolean {
    return this.length > 0;
  }

  toArray(): number[] {
    return Array.from({ length: this.length }, (_, i) => this.start + i * this.step);
  }
}

/** What keys(), values() and items() of a dict give. */
export class DictView extends PyObject {
  readonly dict: Dict;
  readonly part: 'keys' | 'values' | 'items';

  constructor(dict: Dict, part: 'keys' | 'values' | 'items') {
    super();
    this.dict = dict;
    this.part = part;
  }

  override get typeName(): string {
    return `dict_${this.part}`;
  }

  override get truth(): boolean {
    return this.dict.size > 0;
  }

  toArray(): Value[] {
    const { dict, part } = this;
    if (part === 'keys') return dict.keys();
    if (part === 'values') return dict.values();
    return dict.items().map((pair) => new Tuple(pair));
  }
}

/** Values that are computed one by one, and can be taken only once. */
export class Lazy extends PyObject {
  override readonly typeName: string;
  readonly #iterator: Iterator<Value>;

  constructor(iterator: Iterator<Value>, typeName = 'generator') {
    super();
    this.#iterator = iterator;
    this.typeName = typeName;
  }

  /** The next value; undefined: there is none. */
  next(): Value | undefined {
    const { done, value } = this.#iterator.next();
    return done ? undefined : (value as Value);
  }
}
