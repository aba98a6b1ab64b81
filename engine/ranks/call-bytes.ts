import { crc32 } from 'node:zlib';

/** What rank 0 tells the others to do. */
export const CALL_KINDS = {
  /** Bytes of a call that does not fit into the memory at once; the last piece has the kind of the call. */
  piece: 0,
  open: 1,
  forward: 2,
  copyBlocks: 3,
  areFinite: 4,
  putAdapter: 5,
  clearAdapter: 6,
  end: 7,
} as const;
export type CallKind = (typeof CALL_KINDS)[keyof typeof CALL_KINDS];

/** Arrays of a call on their way from rank 0 to the others. */
export type CallArray = Int32Array | Float32Array | Uint8Array;

/**
 * Bytes of a call in the memory of a group:
 *
 *   header: kind, bytes, checksum | body: number of arrays, bytes of each | array 0 | array 1 ...     each at a multiple of 8
 */
const HEADER_BYTES = 64;
const KIND = 0;
const BYTES = 1;
const CHECKSUM = 2;

/** Writes calls into the memory of a group. */
export class CallWriter {
  readonly #header: Int32Array;
  readonly #room: Uint8Array;
  readonly #handOver: () => void;

  /** @param handOver gives a piece of a long call to the others, and returns once they have it */
  constructor(memory: ArrayBuffer, handOver: () => void) {
    this.#header = new Int32Array(memory, 0, HEADER_BYTES / Int32Array.BYTES_PER_ELEMENT);
    this.#room = new Uint8Array(memory, HEADER_BYTES);
    this.#handOver = handOver;
  }

  /** Writes a call; what does not fit goes ahead in pieces. The caller rings for it. */
  write(kind: CallKind, arrays: readonly CallArray[]): void {
    const bytes = bodyBytes(arrays);
    if (bytes <= this.#room.length) {
      writeBody(this.#room, arrays);
      this.#end(kind, bytes);
      return;
    }
    const body = new Uint8Array(bytes);
    writeBody(body, arrays);
    let at = 0;
    for (; bytes - at > this.#room.length; at += this.#room.length) {
      this.#room.set(body.subarray(at, at + this.#room.length));
      this.#end(CALL_KINDS.piece, this.#room.length);
      this.#handOver();
    }
    this.#room.set(body.subarray(at));
    this.#end(kind, bytes - at);
  }

  #end(kind: CallKind, bytes: number): void {
    this.#header[KIND] = kind;
    this.#header[BYTES] = bytes;
    this.#header[CHECKSUM] = crc32(this.#room.subarray(0, bytes)) | 0;
  }
}

export interface Call {
  kind: CallKind;
  /** Arrays as bytes, in the group's memory where the call fits in: valid until the call is answered. */
  arrays: Uint8Array[];
}

/** Reads the calls of rank 0. */
export class CallReader {
  readonly #header: Int32Array;
  readonly #room: Uint8Array;
  #pieces: Uint8Array[] = [];

  constructor(memory: ArrayBuffer) {
    this.#header = new Int32Array(memory, 0, HEADER_BYTES / Int32Array.BYTES_PER_ELEMENT);
    this.#room = new Uint8Array(memory, HEADER_BYTES);
  }

  /** The call in the memory; null: it was a piece of one. @throws Error where its bytes are not those that were written */
  read(): Call | null {
    const kind = this.#header[KIND] as CallKind;
    const length = this.#header[BYTES]!;
    if (length < 0 || length > this.#room.length) throw new Error(`A call of rank 0 has ${length} bytes.`);
    const bytes = this.#room.subarray(0, length);
    if ((crc32(bytes) | 0) !== this.#header[CHECKSUM]) {
      throw new Error('The bytes of a call are not those that rank 0 wrote.');
    }
    if (kind === CALL_KINDS.piece) {
      this.#pieces.push(bytes.slice());
      return null;
    }
    const body = this.#pieces.length === 0 ? bytes : joined([...this.#pieces, bytes]);
    this.#pieces = [];
    return { kind, arrays: readBody(body) };
  }
}

function joined(pieces: readonly Uint8Array[]): Uint8Array {
  const body = new Uint8Array(pieces.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const piece of pieces) {
    body.set(piece, at);
    at += piece.length;
  }
  return body;
}

function eights(bytes: number): number {
  return Math.ceil(bytes / 8) * 8;
}

function tableBytes(arrays: number): number {
  return eights((1 + arrays) * Int32Array.BYTES_PER_ELEMENT);
}

function bodyBytes(arrays: readonly CallArray[]): number {
  return arrays.reduce((sum, { byteLength }) => sum + eights(byteLength), tableBytes(arrays.length));
}

function writeBody(target: Uint8Array, arrays: readonly CallArray[]): void {
  const table = new Int32Array(target.buffer, target.byteOffset, 1 + arrays.length);
  table[0] = arrays.length;
  let at = tableBytes(arrays.length);
  for (const [i, { buffer, byteOffset, byteLength }] of arrays.entries()) {
    table[1 + i] = byteLength;
    target.set(new Uint8Array(buffer, byteOffset, byteLength), at);
    at += eights(byteLength);
  }
}

function readBody(body: Uint8Array): Uint8Array[] {
  const words = new Int32Array(body.buffer, body.byteOffset, body.length >> 2);
  const count = words[0]!;
  let at = tableBytes(count);
  return Array.from({ length: count }, (_, i) => {
    const bytes = body.subarray(at, at + words[1 + i]!);
    at += eights(bytes.length);
    return bytes;
  });
}

/** The bytes as an array of another type, without a copy. */
export function asInts({ buffer, byteOffset, byteLength }: Uint8Array): Int32Array {
  return new Int32Array(buffer, byteOffset, byteLength >> 2);
}

export function asFloats({ buffer, byteOffset, byteLength }: Uint8Array): Float32Array {
  return new Float32Array(buffer, byteOffset, byteLength >> 2);
}
