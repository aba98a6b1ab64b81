import { crc32 } from 'node:zlib';
import { joinedBytes } from '../../base/joined-arrays.js';

/** What rank 0 orders the others to do. */
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
  copyStates: 8,
  areStatesFinite: 9,
} as const;
export type CallKind = (typeof CALL_KINDS)[keyof typeof CALL_KINDS];

/** Arrays of a call on their way from rank 0 to the others. */
export type CallArray = Int32Array | Float32Array | Uint8Array;

/**
 * Calls in the memory of a group. They lie one after the other, so that rank 0 can write the next ones while
 * others still read; a call is written over when all have answered it:
 *
 *   memory   table: where the last TABLE calls begin | ring: call 7, free, call 4, call 5, call 6
 *   call     header: kind, bytes, checksum | body: number of arrays, bytes of each | array 0 | array 1 ...     each at a multiple of 8
 */
const TABLE = 64;
const TABLE_BYTES = TABLE * Int32Array.BYTES_PER_ELEMENT;
const HEADER_BYTES = 64;
const KIND = 0;
const BYTES = 1;
const CHECKSUM = 2;

/** Rank 0's view of the calls that it has begun. */
export interface CallProgress {
  /** Number of the last call that was begun. */
  callNumber(): number;
  /** The last one that all others have answered. */
  answeredByAll(): number;
}

export interface CallWriterEvents {
  /** Waits until the others have answered all calls. */
  awaitAll(): void;
  /** Gives a piece of a long call to the others, and returns once they have it. */
  handOver(): void;
}

/** Writes calls into the memory of a group. */
export class CallWriter {
  readonly #memory: ArrayBuffer;
  readonly #progress: CallProgress;
  readonly #events: CallWriterEvents;
  /** Calls that not all have answered, oldest first, and their places in memory. */
  #kept: { number: number; begin: number; end: number }[] = [];

  constructor(memory: ArrayBuffer, progress: CallProgress, events: CallWriterEvents) {
    this.#memory = memory;
    this.#progress = progress;
    this.#events = events;
  }

  /** Writes the next call; what does not fit goes ahead in pieces. The caller rings for it, or writes another one in its place. */
  write(kind: CallKind, arrays: readonly CallArray[]): void {
    const bytes = bodyBytes(arrays);
    let place = this.#place(bytes);
    if (place === null) {
      this.#events.awaitAll();
      place = this.#place(bytes);
    }
    if (place === null) {
      this.#writePieces(kind, bytes, arrays);
      return;
    }
    const body = new Uint8Array(this.#memory, place + HEADER_BYTES, bytes);
    writeBody(body, arrays);
    this.#end(place, kind, body);
  }

  #writePieces(kind: CallKind, bytes: number, arrays: readonly CallArray[]): void {
    const whole = new Uint8Array(bytes);
    writeBody(whole, arrays);
    const room = this.#memory.byteLength - TABLE_BYTES - HEADER_BYTES;
    for (let at = 0; at < bytes; at += room) {
      const piece = whole.subarray(at, at + room);
      const place = this.#place(piece.length)!;
      const body = new Uint8Array(this.#memory, place + HEADER_BYTES, piece.length);
      body.set(piece);
      const isLast = at + room >= bytes;
      this.#end(place, isLast ? kind : CALL_KINDS.piece, body);
      if (!isLast) this.#events.handOver();
    }
  }

  #end(place: number, kind: CallKind, body: Uint8Array): void {
    const header = new Int32Array(this.#memory, place, HEADER_BYTES / Int32Array.BYTES_PER_ELEMENT);
    header[KIND] = kind;
    header[BYTES] = body.length;
    header[CHECKSUM] = crc32(body) | 0;
  }

  /** Room for the next call, after the newest one or at the beginning; null: there is none. */
  #place(bytes: number): number | null {
    const number = (this.#progress.callNumber() + 1) >>> 0;
    const answered = this.#progress.answeredByAll();
    // A call that was refused before the ring is no call.
    this.#kept = this.#kept.filter((one) => isBefore(answered, one.number) && isBefore(one.number, number));
    const size = eights(HEADER_BYTES + bytes);
    const [oldest, newest] = [this.#kept[0], this.#kept.at(-1)];
    const isFull = this.#kept.length === TABLE;
    const begin = isFull ? null : beginOf(size, this.#memory.byteLength, oldest?.begin, newest?.end);
    if (begin === null) return null;
    this.#kept.push({ number, begin, end: begin + size });
    tableOf(this.#memory)[number % TABLE] = begin;
    return begin;
  }
}

/**
 *   oldest is in front   | free | oldest ... newest | free |        after the newest, or else at the beginning
 *   newest is in front   | ... newest | free | oldest ... |         in between
 */
function beginOf(size: number, length: number, oldest?: number, newestEnd?: number): number | null {
  if (oldest === undefined || newestEnd === undefined)
    return TABLE_BYTES + size <= length ? TABLE_BYTES : null;
  if (newestEnd <= oldest) return newestEnd + size <= oldest ? newestEnd : null;
  if (newestEnd + size <= length) return newestEnd;
  return TABLE_BYTES + size <= oldest ? TABLE_BYTES : null;
}

/** True if call number a was begun before call number b; the numbers wrap around. */
function isBefore(a: number, b: number): boolean {
  return ((a - b) | 0) < 0;
}

function tableOf(memory: ArrayBuffer): Int32Array {
  return new Int32Array(memory, 0, TABLE);
}

/** Where a call lies, and its bytes with the header. @throws Error where that cannot be */
export function callIn(memory: ArrayBuffer, number: number): { place: number; bytes: Uint8Array } {
  const place = tableOf(memory)[number % TABLE]!;
  const most = memory.byteLength - HEADER_BYTES - place;
  if (place < TABLE_BYTES || most < 0) throw new Error(`Call ${number} of rank 0 lies at ${place}.`);
  const length = new Int32Array(memory, place, 2)[BYTES]!;
  if (length < 0 || length > most) throw new Error(`A call of rank 0 has ${length} bytes.`);
  return { place, bytes: new Uint8Array(memory, place, HEADER_BYTES + length) };
}

/** Puts the bytes of a call, with the header, into another memory, to the same place. @throws Error where it has no such place */
export function putCall(memory: ArrayBuffer, number: number, place: number, bytes: Uint8Array): void {
  if (place < TABLE_BYTES || place % 8 !== 0 || place + bytes.length > memory.byteLength) {
    throw new Error(`Call ${number} of rank 0 lies at ${place} and has ${bytes.length} bytes.`);
  }
  new Uint8Array(memory).set(bytes, place);
  tableOf(memory)[number % TABLE] = place;
}

export interface Call {
  kind: CallKind;
  /** Arrays as bytes, in the group's memory where the call fits in: valid until the call is answered. */
  arrays: Uint8Array[];
}

/** Reads the calls of rank 0. */
export class CallReader {
  readonly #memory: ArrayBuffer;
  #pieces: Uint8Array[] = [];

  constructor(memory: ArrayBuffer) {
    this.#memory = memory;
  }

  /** A call that was begun; null: it was a piece of one. @throws Error where its bytes are not those that were written */
  read(number: number): Call | null {
    const { place, bytes } = callIn(this.#memory, number);
    const header = new Int32Array(this.#memory, place, HEADER_BYTES / Int32Array.BYTES_PER_ELEMENT);
    const kind = header[KIND] as CallKind;
    const body = bytes.subarray(HEADER_BYTES);
    if ((crc32(body) | 0) !== header[CHECKSUM]) {
      throw new Error('The bytes of a call are not those that rank 0 wrote.');
    }
    if (kind === CALL_KINDS.piece) {
      this.#pieces.push(body.slice());
      return null;
    }
    const whole = this.#pieces.length === 0 ? body : joinedBytes([...this.#pieces, body]);
    this.#pieces = [];
    return { kind, arrays: readBody(whole) };
  }
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
