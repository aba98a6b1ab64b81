const QUOTE = 0x22;
const COLON = 0x3a;
const OPEN_LIST = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_LIST = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;
const SPACE = 0x20;

/** How deep the fields of an input lie: in an object, in the list `inputs`, in an object. */
const INPUT_DEPTH = 3;
/** Lists of one request, of which each input has one: what has more is refused. */
const MAX_LISTS = 4096;
/** Bytes of a name that is read, each of its letters spelt as \uXXXX. */
const LONGEST_NAME = 36;

/**
 * Finds the lists under `data` of a request's inputs, without parsing it: text that is no JSON may have some,
 * and is refused by the parser of the rest.
 *
 *   {"inputs":[{"name":"A","data":[[1,2],[3,4]]},{"name":"B","data":[5]}]}
 *   1         23                 ^begin       ^end                  ^ ^
 */
export class DataLists {
  /** Where each list begins, and the byte after it. */
  readonly lists: [begin: number, end: number][] = [];
  readonly #bytes: Uint8Array;
  #at = 0;
  #depth = 0;
  /** What was opened at each depth up to an input's. */
  readonly #opened: number[] = [];
  #isInText = false;
  /** The latest text: where it begins and ends, without its quotes. */
  #textBegin = 0;
  #textEnd = 0;
  /** What the latest text says, once it was asked for: a colon without a name before it asks for the same one again. */
  #name: string | null = null;
  #isInInputs = false;
  /** Where the list begins that is being passed; -1: none is. */
  #begin = -1;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  /** Looks at everything in front of `end`. True: nothing is left. */
  read(end: number): boolean {
    const bytes = this.#bytes;
    const stop = Math.min(end, bytes.length);
    let at = this.#at;
    for (; at < stop; at++) {
      const byte = bytes[at]!;
      if (this.#isInText) {
        if (byte === BACKSLASH) at++;
        else if (byte === QUOTE) {
          this.#isInText = false;
          this.#textEnd = at;
          this.#name = null;
        }
      } else if (byte === QUOTE) {
        this.#isInText = true;
        this.#textBegin = at + 1;
      } else if (byte === OPEN_LIST || byte === OPEN_OBJECT) {
        if (++this.#depth <= INPUT_DEPTH) this.#opened[this.#depth] = byte;
      } else if (byte === CLOSE_LIST || byte === CLOSE_OBJECT) {
        if (--this.#depth === INPUT_DEPTH && this.#begin >= 0) {
          this.lists.push([this.#begin, at + 1]);
          this.#begin = -1;
          if (this.lists.length > MAX_LISTS) return true;
        }
      } else if (byte === COLON && this.#begin < 0) this.#passName(at);
    }
    this.#at = at;
    return stop === bytes.length;
  }

  /** A colon: the latest text is the name of a field. */
  #passName(colon: number): void {
    const [, root, inputs, input] = this.#opened;
    if (this.#depth === 1) this.#isInInputs = this.#latestName() === 'inputs';
    const isOfInput =
      this.#depth === INPUT_DEPTH &&
      this.#isInInputs &&
      root === OPEN_OBJECT &&
      inputs === OPEN_LIST &&
      input === OPEN_OBJECT;
    if (!isOfInput || this.#latestName() !== 'data') return;
    let next = colon + 1;
    while (this.#bytes[next]! <= SPACE) next++;
    if (this.#bytes[next] === OPEN_LIST) this.#begin = next;
  }

  /** What the latest text says; '' where it is longer than the names that are looked for, or says nothing. */
  #latestName(): string {
    this.#name ??= this.#readName();
    return this.#name;
  }

  #readName(): string {
    if (this.#textEnd - this.#textBegin > LONGEST_NAME) return '';
    const text = this.#text(this.#textBegin, this.#textEnd);
    if (!text.includes('\\')) return text;
    try {
      return JSON.parse(`"${text}"`) as string;
    } catch {
      return '';
    }
  }

  #text(begin: number, end: number): string {
    return Buffer.from(this.#bytes.buffer, this.#bytes.byteOffset + begin, end - begin).toString('latin1');
  }

  /**
   * Everything except the lists, with `[0]`, `[1]`, ... in their places; null where that is longer than
   * `most` bytes, or the lists are more than are taken.
   */
  rest(most: number): Uint8Array | null {
    if (this.lists.length > MAX_LISTS) return null;
    const parts: Uint8Array[] = [];
    let length = 0;
    let from = 0;
    const add = (part: Uint8Array) => {
      parts.push(part);
      length += part.length;
    };
    for (const [i, [begin, end]] of this.lists.entries()) {
      add(this.#bytes.subarray(from, begin));
      add(Buffer.from(`[${i}]`));
      from = end;
      if (length > most) return null;
    }
    add(this.#bytes.subarray(from));
    return length > most ? null : Buffer.concat(parts);
  }
}
