/** Most characters of a text, or items of a list of numbers, that are serialised at once. */
const SLICE = 4096;

/**
 * A list whose items are made when they are written, one at a time, so that the whole list never exists as objects.
 * JSON.stringify writes the same.
 */
export class JsonList {
  readonly length: number;
  readonly #at: (index: number) => unknown;

  /** @param at makes the item at an index; it never returns undefined */
  constructor(length: number, at: (index: number) => unknown) {
    this.length = length;
    this.#at = at;
  }

  /** Makes a list of existing items, each written by `make`. */
  static of<T>(items: readonly T[], make: (item: T, index: number) => unknown): JsonList {
    return new JsonList(items.length, (index) => make(items[index]!, index));
  }

  at(index: number): unknown {
    return this.#at(index);
  }

  toJSON(): unknown[] {
    return Array.from({ length: this.length }, (_, index) => this.#at(index));
  }
}

/** A list of numbers, which is written slice by slice. JSON.stringify writes the same. */
export class JsonNumbers {
  readonly #numbers: ArrayLike<number>;

  constructor(numbers: ArrayLike<number>) {
    this.#numbers = numbers;
  }

  *parts(): Generator<string, void, undefined> {
    const { length } = this.#numbers;
    for (let start = 0; start < length; start += SLICE) {
      const slice = Array.prototype.slice.call(this.#numbers, start, start + SLICE);
      yield (start === 0 ? '' : ',') + JSON.stringify(slice).slice(1, -1);
    }
  }

  toJSON(): number[] {
    return Array.from(this.#numbers);
  }
}

/** An object with long fields, each of which is written by itself. JSON.stringify writes the same. */
export class JsonObject {
  readonly #fields: object;

  constructor(fields: object) {
    this.#fields = fields;
  }

  *entries(): Generator<[string, unknown], void, undefined> {
    for (const entry of Object.entries(this.#fields)) if (entry[1] !== undefined) yield entry;
  }

  toJSON(): object {
    return this.#fields;
  }
}

/**
 * The JSON of a value in parts, each made when it is asked for: lists and objects of the kinds above part by part, a
 * long text slice by slice, any other value whole. Joined they are what JSON.stringify writes.
 */
export function* jsonParts(value: unknown): Generator<string, void, undefined> {
  if (value instanceof JsonList) {
    yield '[';
    for (let index = 0; index < value.length; index++) {
      if (index > 0) yield ',';
      yield* itemParts(value.at(index));
    }
    yield ']';
  } else if (value instanceof JsonNumbers) {
    yield '[';
    yield* value.parts();
    yield ']';
  } else if (value instanceof JsonObject) {
    let before = '{';
    for (const [name, field] of value.entries()) {
      yield `${before}${JSON.stringify(name)}:`;
      yield* itemParts(field);
      before = ',';
    }
    yield before === '{' ? '{}' : '}';
  } else if (typeof value === 'string' && value.length > SLICE) yield* textParts(value);
  else yield JSON.stringify(value);
}

/** Parts of an item, without a generator where there is only one part, as for most items. */
function itemParts(value: unknown): Iterable<string> {
  const isLong = typeof value === 'string' ? value.length > SLICE : isInParts(value);
  return isLong ? jsonParts(value) : [JSON.stringify(value)];
}

function isInParts(value: unknown): boolean {
  return value instanceof JsonList || value instanceof JsonNumbers || value instanceof JsonObject;
}

function* textParts(text: string): Generator<string, void, undefined> {
  yield '"';
  let end = 0;
  for (let start = 0; start < text.length; start = end) {
    end = Math.min(text.length, start + SLICE);
    // A cut between the halves of a character would make both be escaped.
    if (isHighSurrogate(text.charCodeAt(end - 1)) && end < text.length) end++;
    yield JSON.stringify(text.slice(start, end)).slice(1, -1);
  }
  yield '"';
}

function isHighSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit < 0xdc00;
}
