import type { InferError } from '../../../callbacks/infer/infer-error.js';
import { malformed } from '../../serving/infer-failure.js';
import type { NumberType } from '../../serving/protocol/number-types.js';
import { MAX_JSON_DEPTH } from '../web/bodies/json-size.js';

const TAB = 0x09;
const NEW_LINE = 0x0a;
const RETURN = 0x0d;
const SPACE = 0x20;
const QUOTE = 0x22;
const COMMA = 0x2c;
const MINUS = 0x2d;
const ZERO = 0x30;
const NINE = 0x39;
const OPEN_LIST = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_LIST = 0x5d;
const LOWER_U = 0x75;
const OPEN_OBJECT = 0x7b;

/** Digits of a number that JavaScript's numbers hold whatever they are. */
const EXACT_DIGITS = 15;
/** Characters of one number, beyond any that means something. */
const LONGEST_NUMBER = 4096;

/** How a wrong element, and a wrong number of elements, is reported. */
export interface Refusals {
  ofType(found: string): InferError;
  ofCount(found: string): InferError;
}

/**
 * Reads a list of JSON of any depth into the bytes of a tensor, some of its text at a time: where a request
 * is long, its parser would hold the thread for as long as it takes, and could not distinguish 64-bit
 * numbers.
 *
 *   [[1, 2], [3, 4]]     read(7)  ->  1 2      read(16)  ->  1 2 3 4, true
 *    ^at     ^end
 */
abstract class Elements {
  protected readonly bytes: Uint8Array;
  protected readonly refusals: Refusals;
  protected at = 0;
  protected found = 0;
  readonly #count: number;
  #depth = 0;
  /** An element or a list has to come next; otherwise a comma or the end of a list. */
  #wantsValue = true;
  /** A list has just begun: it may end at once. */
  #isNew = false;

  constructor(bytes: Uint8Array, count: number, refusals: Refusals) {
    this.bytes = bytes;
    this.#count = count;
    this.refusals = refusals;
  }

  /** Reads up to `end` at least, if there is so much. True: the list has ended. @throws InferError */
  read(end: number): boolean {
    const { bytes } = this;
    const stop = Math.min(end, bytes.length);
    while (this.at < stop) {
      if (!this.goOn(stop)) return false;
      const byte = bytes[this.at]!;
      if (byte === SPACE || byte === NEW_LINE || byte === RETURN || byte === TAB) this.at++;
      else if (!this.#wantsValue) this.#readBetween(byte);
      else if (byte === OPEN_LIST) this.#openList();
      else if (byte === CLOSE_LIST && this.#isNew) this.#closeList();
      else {
        if (this.found === this.#count) throw this.refusals.ofCount(`more than ${this.#count}`);
        this.#wantsValue = false;
        this.#isNew = false;
        this.found++;
        this.readElement(byte, stop);
      }
    }
    if (stop < bytes.length) return false;
    if (!this.goOn(stop) || this.#depth !== 0 || this.#wantsValue) throw broken('the end comes too early');
    if (this.found !== this.#count) throw this.refusals.ofCount(String(this.found));
    return true;
  }

  /** The elements, once all are read. */
  abstract result(): Uint8Array;

  /** Reads an element that begins with `byte`, or a part of it. */
  protected abstract readElement(byte: number, stop: number): void;

  /** Continues an element of which a part was read. False: it has not ended at `stop`. */
  protected goOn(_stop: number): boolean {
    return true;
  }

  #openList(): void {
    if (++this.#depth > MAX_JSON_DEPTH) throw broken(`lists are nested more than ${MAX_JSON_DEPTH} deep`);
    this.#isNew = true;
    this.at++;
  }

  #closeList(): void {
    this.#depth--;
    this.#wantsValue = false;
    this.#isNew = false;
    this.at++;
  }

  #readBetween(byte: number): void {
    if (byte === CLOSE_LIST && this.#depth > 0) this.#closeList();
    else if (byte === COMMA && this.#depth > 0) {
      this.#wantsValue = true;
      this.at++;
    } else throw broken(`${this.shown()} follows an element`);
  }

  /** What stands where it is read. */
  protected shown(): string {
    const rest = this.bytes.subarray(this.at, this.at + 20);
    return `'${
      Buffer.from(rest)
        .toString('latin1')
        .split(/[\s,\]]/, 1)[0] || rest.length
    }'`;
  }
}

/** As the parser's own refusal begins. */
export function broken(reason: string): InferError {
  return malformed(`failed to parse the request JSON buffer: ${reason}`);
}

/** Elements of a type of numbers. */
export class NumberElements extends Elements {
  readonly #type: NumberType;
  readonly #data: Uint8Array;
  readonly #view: DataView;
  #offset = 0;

  constructor(bytes: Uint8Array, count: number, type: NumberType, refusals: Refusals) {
    super(bytes, count, refusals);
    this.#type = type;
    // A list has no more elements than bytes: a shape that says so is refused before there is room for it.
    this.#data = new Uint8Array(Math.min(count, bytes.length) * type.bytes);
    this.#view = new DataView(this.#data.buffer);
  }

  override result(): Uint8Array {
    return this.#data;
  }

  protected override readElement(byte: number): void {
    const begin = this.at;
    const value = this.#value(byte);
    if (!this.#type.write(this.#view, this.#offset, value)) {
      this.at = begin;
      throw this.refusals.ofType(this.shown().slice(1, -1));
    }
    this.#offset += this.#type.bytes;
  }

  #value(byte: number): unknown {
    const { bytes } = this;
    let i = byte === MINUS ? this.at + 1 : this.at;
    const first = i;
    let number = 0;
    while (bytes[i]! >= ZERO && bytes[i]! <= NINE && i - first <= EXACT_DIGITS) {
      number = 10 * number + (bytes[i]! - ZERO);
      i++;
    }
    const digits = i - first;
    const isPlain = digits > 0 && digits <= EXACT_DIGITS && (digits === 1 || bytes[first] !== ZERO);
    if (!isPlain || !isDelimiter(bytes[i])) return this.#longValue(byte);
    this.at = i;
    return byte === MINUS ? -number : number;
  }

  /** Anything but a short whole number. @throws InferError for what is no value of JSON */
  #longValue(byte: number): unknown {
    if (byte === QUOTE || byte === OPEN_OBJECT) throw this.refusals.ofType(this.shown().slice(1, -1));
    let end = this.at;
    while (!isDelimiter(this.bytes[end]) && end - this.at <= LONGEST_NUMBER) end++;
    const text = Buffer.from(this.bytes.buffer, this.bytes.byteOffset + this.at, end - this.at).toString(
      'latin1',
    );
    if (text === 'true' || text === 'false' || text === 'null') {
      this.at = end;
      return text === 'null' ? null : text === 'true';
    }
    const value = this.#type.isFloat && NOT_FINITE.has(text) ? Number(NOT_FINITE.get(text)) : numberOf(text);
    if (value === null) throw broken(`${this.shown()} is no value`);
    this.at = end;
    return value;
  }
}

/** As Triton and Python's writer of JSON have them. */
const NOT_FINITE: ReadonlyMap<string, number> = new Map([
  ['NaN', Number.NaN],
  ['Infinity', Number.POSITIVE_INFINITY],
  ['-Infinity', Number.NEGATIVE_INFINITY],
  ['Inf', Number.POSITIVE_INFINITY],
  ['-Inf', Number.NEGATIVE_INFINITY],
]);

/** A JSON number, exact where it is whole; null: it is not a number, or too large. */
function numberOf(text: string): number | bigint | null {
  if (text.length > LONGEST_NUMBER) return null;
  if (/^-?(?:0|[1-9]\d*)$/.test(text)) {
    return text.length > EXACT_DIGITS ? BigInt(text) : Number(text);
  }
  if (!/^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/.test(text)) return null;
  const value = Number(text);
  return Number.isFinite(value) ? value : null;
}

function isDelimiter(byte: number | undefined): boolean {
  return (
    byte === COMMA ||
    byte === CLOSE_LIST ||
    byte === SPACE ||
    byte === NEW_LINE ||
    byte === RETURN ||
    byte === TAB ||
    byte === undefined
  );
}

/** What follows a backslash, and what it means. */
const ESCAPES: ReadonlyMap<number, number> = new Map(
  [...'"\\/bfnrt'].map((letter, i) => [letter.charCodeAt(0), '"\\/\b\f\n\r\t'.charCodeAt(i)]),
);
/** What half a character becomes: U+FFFD. */
const UNKNOWN_CHARACTER = 0xfffd;
/** The value of each hexadecimal digit by its byte; 255: it is none. */
const DIGITS = new Uint8Array(256).fill(255);
for (const [digit, letters] of [...'0123456789', 'aA', 'bB', 'cC', 'dD', 'eE', 'fF'].entries()) {
  for (const letter of letters) DIGITS[letter.charCodeAt(0)] = digit;
}

/** Elements that are texts: each becomes its length in UTF-8, 4 bytes, and its bytes. */
export class TextElements extends Elements {
  /** Of three bytes of JSON at least, "", come four. */
  readonly #data: Uint8Array;
  readonly #view: DataView;
  #length = 0;
  /** Where the length of the text is written that has begun; -1: none has. */
  #open = -1;

  constructor(bytes: Uint8Array, count: number, refusals: Refusals) {
    super(bytes, count, refusals);
    this.#data = new Uint8Array(4 + Math.ceil((4 * bytes.length) / 3));
    this.#view = new DataView(this.#data.buffer);
  }

  override result(): Uint8Array {
    return this.#data.subarray(0, this.#length);
  }

  protected override readElement(byte: number, stop: number): void {
    if (byte !== QUOTE) throw this.refusals.ofType(this.shown().slice(1, -1));
    this.#open = this.#length;
    this.#length += 4;
    this.at++;
    this.goOn(stop);
  }

  protected override goOn(stop: number): boolean {
    if (this.#open < 0) return true;
    const { bytes } = this;
    while (this.at < stop) {
      const byte = bytes[this.at]!;
      if (byte === QUOTE) {
        this.at++;
        this.#view.setUint32(this.#open, this.#length - this.#open - 4, true);
        this.#open = -1;
        return true;
      }
      if (byte < SPACE) throw broken('a text holds a control character');
      if (byte === BACKSLASH) this.#readEscape();
      else {
        this.#data[this.#length++] = byte;
        this.at++;
      }
    }
    return false;
  }

  #readEscape(): void {
    const letter = this.bytes[this.at + 1];
    const meant = letter === undefined ? undefined : ESCAPES.get(letter);
    if (meant !== undefined) {
      this.#data[this.#length++] = meant;
      this.at += 2;
      return;
    }
    const first = letter === LOWER_U ? this.#unitAt(this.at) : null;
    if (first === null) throw broken('a backslash stands before what it cannot');
    const isHigh = first >= 0xd800 && first < 0xdc00;
    const second = isHigh && this.bytes[this.at + 6] === BACKSLASH ? this.#unitAt(this.at + 6) : null;
    const isPair = second !== null && second >= 0xdc00 && second < 0xe000;
    if (isPair) this.#putCharacter(0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00));
    else this.#putCharacter(first >= 0xd800 && first < 0xe000 ? UNKNOWN_CHARACTER : first);
    this.at += isPair ? 12 : 6;
  }

  /** Writes a character in UTF-8. */
  #putCharacter(code: number): void {
    const data = this.#data;
    if (code < 0x80) data[this.#length++] = code;
    else if (code < 0x800) {
      data[this.#length++] = 0xc0 | (code >> 6);
      data[this.#length++] = 0x80 | (code & 0x3f);
    } else {
      if (code < 0x1_0000) data[this.#length++] = 0xe0 | (code >> 12);
      else {
        data[this.#length++] = 0xf0 | (code >> 18);
        data[this.#length++] = 0x80 | ((code >> 12) & 0x3f);
      }
      data[this.#length++] = 0x80 | ((code >> 6) & 0x3f);
      data[this.#length++] = 0x80 | (code & 0x3f);
    }
  }

  /** The number after \u; null: it is not a number. */
  #unitAt(at: number): number | null {
    const { bytes } = this;
    if (bytes[at + 1] !== LOWER_U || at + 6 > bytes.length) return null;
    let unit = 0;
    for (let i = at + 2; i < at + 6; i++) {
      const digit = DIGITS[bytes[i]!]!;
      if (digit > 15) return null;
      unit = 16 * unit + digit;
    }
    return unit;
  }
}
