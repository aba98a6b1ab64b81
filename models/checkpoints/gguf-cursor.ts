import { CheckpointError } from './checkpoint.js';
import { readExactly } from './file-reading.js';

/** Most bytes of a GGUF header: vocabularies of a quarter of a million tokens take about a tenth of it. */
const MAX_GGUF_HEADER_BYTES = 128 * 1024 * 1024;
const FIRST_READ_BYTES = 2 * 1024 * 1024;

/** Reads little-endian values of a GGUF header one after another. The header is read in growing steps, never beyond its limit. */
export class GgufCursor {
  readonly file: string;
  readonly fileSize: number;
  readonly #fd: number;
  readonly #limit: number;
  #buffer = Buffer.alloc(0);
  #position = 0;

  constructor(file: string, fd: number, fileSize: number) {
    this.file = file;
    this.fileSize = fileSize;
    this.#fd = fd;
    this.#limit = Math.min(fileSize, MAX_GGUF_HEADER_BYTES);
  }

  get position(): number {
    return this.#position;
  }

  /** Number of bytes that the header may still take. */
  get remaining(): number {
    return this.#limit - this.#position;
  }

  /** Moves over `length` bytes and returns their offset in `bytes`. */
  #take(length: number, what: string): number {
    const begin = this.#position;
    if (length > this.#limit - begin) {
      const bound =
        this.#limit < this.fileSize
          ? `a header of ${this.#limit} bytes`
          : `the file's ${this.fileSize} bytes`;
      throw new CheckpointError(
        `${this.file}: ${what} takes ${length} bytes at byte ${begin}, which is beyond ${bound}.`,
      );
    }
    this.#position = begin + length;
    if (this.#position > this.#buffer.length) this.#readUpTo(this.#position);
    return begin;
  }

  #readUpTo(end: number): void {
    const size = Math.min(this.#limit, Math.max(end, FIRST_READ_BYTES, this.#buffer.length * 2));
    const grown = Buffer.allocUnsafe(size);
    this.#buffer.copy(grown);
    readExactly(this.file, this.#fd, grown.subarray(this.#buffer.length), this.#buffer.length);
    this.#buffer = grown;
  }

  u8(what: string): number {
    const at = this.#take(1, what);
    return this.#buffer[at]!;
  }
  i8(what: string): number {
    const at = this.#take(1, what);
    return this.#buffer.readInt8(at);
  }
  u16(what: string): number {
    const at = this.#take(2, what);
    return this.#buffer.readUInt16LE(at);
  }
  i16(what: string): number {
    const at = this.#take(2, what);
    return this.#buffer.readInt16LE(at);
  }
  u32(what: string): number {
    const at = this.#take(4, what);
    return this.#buffer.readUInt32LE(at);
  }
  i32(what: string): number {
    const at = this.#take(4, what);
    return this.#buffer.readInt32LE(at);
  }
  f32(what: string): number {
    const at = this.#take(4, what);
    return this.#buffer.readFloatLE(at);
  }
  f64(what: string): number {
    const at = this.#take(8, what);
    return this.#buffer.readDoubleLE(at);
  }
  u64(what: string): number | bigint {
    const at = this.#take(8, what);
    return exact(this.#buffer.readBigUInt64LE(at));
  }
  i64(what: string): number | bigint {
    const at = this.#take(8, what);
    return exact(this.#buffer.readBigInt64LE(at));
  }

  /** A count, length or offset: a u64 that a number holds exactly. */
  size(what: string): number {
    const at = this.#take(8, what);
    const value = this.#buffer.readUInt32LE(at) + this.#buffer.readUInt32LE(at + 4) * 2 ** 32;
    if (!Number.isSafeInteger(value)) {
      throw new CheckpointError(
        `${this.file}: ${what} is ${this.#buffer.readBigUInt64LE(at)}, larger than any file.`,
      );
    }
    return value;
  }

  string(what: string): string {
    const length = this.size(what);
    const at = this.#take(length, what);
    return this.#buffer.toString('utf8', at, at + length);
  }

  /** A copy of the next `length` bytes, aligned for any typed array. */
  bytes(length: number, what: string): Uint8Array {
    const at = this.#take(length, what);
    const copy = new Uint8Array(length);
    copy.set(this.#buffer.subarray(at, at + length));
    return copy;
  }
}

function exact(value: bigint): number | bigint {
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : value;
}
