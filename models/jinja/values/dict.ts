import { typeError } from '../errors.js';
import { Float, PyObject, Tuple, type Value } from './value.js';

/** A key as a Map compares it: equal keys of Python are the same one. */
type MapKey = string | number | bigint | null | object;

/** Python's dict: keys are any values that do not change, in the order in which they came; 1, 1.0 and True are one key. */
export class Dict extends PyObject {
  override readonly typeName = 'dict';
  readonly #values = new Map<MapKey, Value>();
  /** Keys that are not their own map keys. */
  #keys: Map<MapKey, Value> | null = null;
  /** Map keys of tuples, by what they contain. */
  #tuples: Map<string, object> | null = null;

  static of(pairs: Iterable<readonly [Value, Value]>): Dict {
    const dict = new Dict();
    for (const [key, value] of pairs) dict.set(key, value);
    return dict;
  }

  get size(): number {
    return this.#values.size;
  }

  override get truth(): boolean {
    return this.#values.size > 0;
  }

  /** The value of a text; undefined: there is none. */
  getText(key: string): Value | undefined {
    return this.#values.get(key);
  }

  /** The value of a key; undefined: there is none. @throws JinjaError where the key cannot be one. */
  get(key: Value): Value | undefined {
    return this.#values.get(typeof key === 'string' ? key : this.#mapKey(key));
  }

  has(key: Value): boolean {
    return this.get(key) !== undefined;
  }

  /** Used only while a dict is made: templates cannot change one. */
  set(key: Value, value: Value): void {
    if (typeof key === 'string') {
      this.#values.set(key, value);
      return;
    }
    const mapKey = this.#mapKey(key);
    if (mapKey !== key && !this.#values.has(mapKey)) {
      this.#keys ??= new Map();
      this.#keys.set(mapKey, key);
    }
    this.#values.set(mapKey, value);
  }

  keys(): Value[] {
    const own = this.#keys;
    const keys = [...this.#values.keys()];
    return own === null ? (keys as Value[]) : keys.map((key) => own.get(key) ?? (key as Value));
  }

  values(): Value[] {
    return [...this.#values.values()];
  }

  items(): [Value, Value][] {
    const own = this.#keys;
    const pairs = [...this.#values] as [Value, Value][];
    return own === null ? pairs : pairs.map(([key, value]) => [own.get(key as MapKey) ?? key, value]);
  }

  #mapKey(key: Value): MapKey {
    switch (typeof key) {
      case 'string':
      case 'number':
      case 'bigint':
        return key;
      case 'boolean':
        return Number(key);
    }
    if (key === null) return null;
    if (key instanceof Float) return ofFloat(key.number);
    if (key instanceof Tuple) return this.#tupleKey(key);
    if (Array.isArray(key) || key instanceof Dict) {
      throw typeError(`unhashable type: '${Array.isArray(key) ? 'list' : 'dict'}'`);
    }
    return key;
  }

  #tupleKey(tuple: Tuple): object {
    const content = JSON.stringify(tuple.items.map((item) => this.#encoded(item)));
    this.#tuples ??= new Map();
    let key = this.#tuples.get(content);
    if (key === undefined) {
      key = {};
      this.#tuples.set(content, key);
    }
    return key;
  }

  /** A part of a tuple as text: equal parts have equal ones. */
  #encoded(item: Value): unknown {
    if (item instanceof Tuple) return item.items.map((one) => this.#encoded(one));
    const key = this.#mapKey(item);
    if (typeof key === 'object' && key !== null) throw typeError('a key has a part that cannot be compared');
    return typeof key === 'bigint' ? { int: String(key) } : key;
  }
}

function ofFloat(number: number): MapKey {
  return Number.isInteger(number) && !Number.isSafeInteger(number) ? BigInt(number) : number;
}
