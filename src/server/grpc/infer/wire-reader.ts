import { isUtf8 } from 'node:buffer';
import { malformed } from '../../../serving/infer-failure.js';
import { unreadable, VarintCursor } from './varint-cursor.js';

/** How a field's value is written. Source: Protocol Buffers, "Encoding". */
export const VARINT = 0;
export const FIXED64 = 1;
export const BYTES = 2;
export const FIXED32 = 5;

/** Fields of one message, those within its messages included: each costs some tens of nanoseconds, however few bytes it has. */
const MAX_FIELDS = 32_768;
/** Bytes of all its texts, which are names and parameters. */
const MAX_TEXT = 2 ** 20;

/** What one message may still have. */
export class FieldBudget {
  #fields = MAX_FIELDS;
  #text = MAX_TEXT;

  /** @throws InferError */
  takeField(): void {
    if (--this.#fields < 0)
      throw malformed(`the message has more than ${MAX_FIELDS} fields, which is the limit`);
  }

  /** @throws InferError */
  takeText(bytes: number): void {
    this.#text -= bytes;
    if (this.#text < 0) {
      throw malformed(
        `names and parameters of the message have more than ${MAX_TEXT} bytes, which is the limit`,
      );
    }
  }
}

/**
 * Goes through the fields of a message, whose bytes stay where they are:
 *
 *   | tag | value | tag | length | bytes | ...        tag: number of the field and how it is written
 *         ^ after next()
 *
 * The library's reader would make all of a long message at once, and an object for each number of 64 bits.
 */
export class WireReader {
  /** Number of the field that `next` has found. */
  field = 0;
  /** How it is written. */
  type = 0;
  readonly #bytes: Uint8Array;
  readonly #budget: FieldBudget;
  readonly #cursor: VarintCursor;

  constructor(bytes: Uint8Array, budget: FieldBudget) {
    this.#bytes = bytes;
    this.#cursor = new VarintCursor(bytes);
    this.#budget = budget;
  }

  /** Goes to the next field, whose value is to be read or skipped. False: there is none. @throws GrpcError, InferError */
  next(): boolean {
    if (this.#cursor.at >= this.#bytes.length) return false;
    this.#budget.takeField();
    this.#cursor.read();
    if (this.#cursor.high !== 0) throw unreadable('a field has no number that fields may have');
    this.field = this.#cursor.low >>> 3;
    this.type = this.#cursor.low & 7;
    if (this.field === 0) throw unreadable('a field has the number 0');
    return true;
  }

  /** Passes the value over. */
  skip(): void {
    if (this.type === VARINT) this.#cursor.read();
    else if (this.type === FIXED64) this.#pass(8);
    else if (this.type === FIXED32) this.#pass(4);
    else if (this.type === BYTES) this.#bytesOfValue();
    else throw unreadable('a field is written in a way that this protocol does not have');
  }

  /** A whole number of 64 bits with a sign; a bigint where JavaScript's numbers do not hold it. */
  signed(): number | bigint {
    this.#expect(VARINT);
    this.#cursor.read();
    const value = (this.#cursor.high | 0) * 2 ** 32 + this.#cursor.low;
    if (Number.isSafeInteger(value)) return value;
    return BigInt.asIntN(64, (BigInt(this.#cursor.high) << 32n) | BigInt(this.#cursor.low));
  }

  /** The same without a sign. */
  unsigned(): number | bigint {
    this.#expect(VARINT);
    this.#cursor.read();
    const value = this.#cursor.high * 2 ** 32 + this.#cursor.low;
    return Number.isSafeInteger(value)
      ? value
      : (BigInt(this.#cursor.high) << 32n) | BigInt(this.#cursor.low);
  }

  isTrue(): boolean {
    this.#expect(VARINT);
    this.#cursor.read();
    return this.#cursor.low !== 0 || this.#cursor.high !== 0;
  }

  double(): number {
    this.#expect(FIXED64);
    const begin = this.#cursor.at;
    this.#pass(8);
    return new DataView(this.#bytes.buffer, this.#bytes.byteOffset + begin).getFloat64(0, true);
  }

  /** Bytes, or a message, of the message's own memory. */
  bytes(): Uint8Array {
    this.#expect(BYTES);
    return this.#bytesOfValue();
  }

  /**
   * @param most characters
   * @param what names it in the error where it is longer
   * @throws InferError, GrpcError for bytes that are no UTF-8
   */
  text(most: number, what: string): string {
    const bytes = this.bytes();
    this.#budget.takeText(bytes.length);
    if (!isUtf8(bytes)) throw unreadable('a text is not UTF-8');
    const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('utf8');
    if (text.length <= most) return text;
    throw malformed(`${what} has ${text.length} characters; at most ${most} are taken`);
  }

  /** A reader of a message within this one. */
  message(): WireReader {
    return new WireReader(this.bytes(), this.#budget);
  }

  /**
   * Numbers of a list, packed or each as a field of its own.
   * @param most numbers that are read: one more shows that there are too many
   */
  signedNumbers(into: (number | bigint)[], most: number): void {
    if (this.type === VARINT) {
      into.push(this.signed());
      return;
    }
    const numbers = this.message();
    numbers.type = VARINT;
    while (numbers.#cursor.at < numbers.#bytes.length && into.length <= most) into.push(numbers.signed());
  }

  #expect(type: number): void {
    if (this.type !== type) throw unreadable(`field ${this.field} is of another type than it should be`);
  }

  #bytesOfValue(): Uint8Array {
    this.#cursor.read();
    if (this.#cursor.high !== 0) throw unreadable('a field is longer than the message');
    const begin = this.#cursor.at;
    this.#pass(this.#cursor.low);
    return this.#bytes.subarray(begin, this.#cursor.at);
  }

  #pass(bytes: number): void {
    if (bytes > this.#bytes.length - this.#cursor.at) throw unreadable('it ends too early');
    this.#cursor.at += bytes;
  }
}
