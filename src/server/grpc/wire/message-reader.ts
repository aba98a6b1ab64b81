import { GrpcError } from './status.js';

/** A message as it came. */
export interface RawMessage {
  bytes: Uint8Array<ArrayBufferLike>;
  isCompressed: boolean;
}

export interface ReaderLimits {
  /** Bytes of the longest message. */
  maxBytes: number;
  /** Called with the size of a message before its memory is allocated. @throws where there will be none */
  expect(bytes: number): void;
  /** Called with the bytes of memory that an arriving message takes. @throws where there is none */
  hold(bytes: number): void;
}

/** In front of each message: whether it is compressed, a byte, and its length, four bytes. */
const PREFIX = 5;
/** Memory that a message begins with: it doubles as the message comes, so that an announced length alone takes none. */
const FIRST_BYTES = 256 * 1024;

/**
 * Takes the messages of a call out of the bytes of its stream, one when it is asked for. Source: gRPC over HTTP/2, "Length-Prefixed-Message".
 *
 *   chunks   | 0 0000000c ... 12 bytes ... 1 00 | 000005 .....|
 *   messages   '---- not compressed ----'  '---- compressed --'
 *
 * A message within one chunk is not copied.
 */
export class MessageReader {
  readonly #limits: ReaderLimits;
  readonly #chunks: Uint8Array[] = [];
  /** Offset in the first chunk where reading continues. */
  #at = 0;
  readonly #prefix = new Uint8Array(PREFIX);
  #prefixBytes = 0;
  /** Of the message that has begun; -1: none has. */
  #length = -1;
  #body: Uint8Array = new Uint8Array();
  #bodyBytes = 0;

  constructor(limits: ReaderLimits) {
    this.#limits = limits;
  }

  push(chunk: Uint8Array): void {
    if (chunk.length > 0) this.#chunks.push(chunk);
  }

  /** Bytes of a message have come that is not whole yet. */
  get isWithin(): boolean {
    return this.#prefixBytes > 0 || this.#length >= 0;
  }

  /** The next whole message; null: more bytes have to come. @throws GrpcError, and what the limits throw */
  next(): RawMessage | null {
    if (this.#length < 0 && !this.#readPrefix()) return null;
    const bytes = this.#readBody();
    if (bytes === null) return null;
    this.#length = -1;
    this.#prefixBytes = 0;
    return { bytes, isCompressed: this.#prefix[0] === 1 };
  }

  #readPrefix(): boolean {
    while (this.#prefixBytes < PREFIX) {
      const part = this.#take(PREFIX - this.#prefixBytes);
      if (part === null) return false;
      this.#prefix.set(part, this.#prefixBytes);
      this.#prefixBytes += part.length;
    }
    const [flag, a, b, c, d] = this.#prefix;
    if (flag! > 1) throw new GrpcError('INTERNAL', `a message begins with ${flag}: 0 or 1 is expected`);
    const length = a! * 2 ** 24 + b! * 2 ** 16 + c! * 2 ** 8 + d!;
    const { maxBytes, expect } = this.#limits;
    if (length > maxBytes) {
      throw new GrpcError(
        'RESOURCE_EXHAUSTED',
        `Received message larger than max (${length} vs. ${maxBytes}), which --max-body-bytes sets`,
      );
    }
    expect(length);
    this.#length = length;
    this.#bodyBytes = 0;
    return true;
  }

  #readBody(): Uint8Array | null {
    const length = this.#length;
    if (this.#bodyBytes === 0) {
      const whole = (this.#chunks[0]?.length ?? 0) - this.#at >= length ? this.#take(length) : null;
      if (whole !== null || length === 0) {
        this.#limits.hold(length);
        return whole ?? new Uint8Array();
      }
    }
    while (this.#bodyBytes < length) {
      const part = this.#take(length - this.#bodyBytes);
      if (part === null) return null;
      this.#makeRoom(this.#bodyBytes + part.length);
      this.#body.set(part, this.#bodyBytes);
      this.#bodyBytes += part.length;
    }
    const body = this.#body.subarray(0, length);
    this.#body = new Uint8Array();
    return body;
  }

  #makeRoom(bytes: number): void {
    if (this.#bodyBytes > 0 && bytes <= this.#body.length) return;
    let room = Math.max(FIRST_BYTES, this.#bodyBytes === 0 ? 0 : this.#body.length);
    while (room < bytes) room *= 2;
    room = Math.min(room, this.#length);
    this.#limits.hold(room);
    const longer = Buffer.allocUnsafeSlow(room);
    longer.set(this.#body.subarray(0, this.#bodyBytes));
    this.#body = longer;
  }

  /** Up to `most` bytes of one chunk; null: there are none. */
  #take(most: number): Uint8Array | null {
    const chunk = this.#chunks[0];
    if (chunk === undefined) return null;
    const end = Math.min(chunk.length, this.#at + most);
    const part = chunk.subarray(this.#at, end);
    this.#at = end;
    if (end === chunk.length) {
      this.#chunks.shift();
      this.#at = 0;
    }
    return part;
  }
}
