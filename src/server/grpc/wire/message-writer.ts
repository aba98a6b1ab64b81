import type { ServerHttp2Stream } from 'node:http2';
import { compressed } from '../../web/accept-encoding.js';
import type { Coding } from './metadata.js';
import { GrpcError } from './status.js';

/** Messages shorter than this are not worth the time that it takes to compress them. */
const MIN_COMPRESSED = 1024;
/** Bytes that are written in one go: a longer message goes in parts, between which others have their turn. */
const SLICE = 2 ** 18;
/** A message up to this is put together: one frame for it costs less than the copy. */
const SMALL = 2 ** 17;
const PREFIX = 5;

export interface WriterOptions {
  /** Null: messages are not compressed. */
  coding: Coding | null;
  /** Milliseconds that the client may take to read a part; undefined: any number. */
  stallLimitMs: number | undefined;
  /** The client has taken longer; its call ends after this. */
  onStall(): void;
}

/** Writes the messages of a call, one after the other, as fast as its client reads them: no more than a part of one waits in the stream. */
export class MessageWriter {
  readonly #stream: ServerHttp2Stream;
  readonly #options: WriterOptions;
  #last: Promise<void> = Promise.resolve();

  constructor(stream: ServerHttp2Stream, options: WriterOptions) {
    this.#stream = stream;
    this.#options = options;
  }

  /**
   * Writes a message whose bytes are those of all parts. Resolves when the stream has room for another one.
   * @throws rejects with a GrpcError where the client has left, or does not read
   */
  write(parts: readonly Uint8Array[]): Promise<void> {
    const written = this.#last.then(() => this.#write(parts));
    this.#last = written.catch(() => {});
    return written;
  }

  /** Writes the last message, then ends the stream. @throws as write */
  async writeLast(parts: readonly Uint8Array[]): Promise<void> {
    const length = lengthOf(parts);
    if (length > SMALL || this.#compresses(length)) {
      await this.write(parts);
      this.#stream.end();
    } else this.#stream.end(framed(parts, length, false));
  }

  async #write(parts: readonly Uint8Array[]): Promise<void> {
    let sent = parts;
    let length = lengthOf(parts);
    const isCompressed = this.#compresses(length);
    if (isCompressed) {
      sent = await collected(compressed(parts, this.#options.coding!));
      length = lengthOf(sent);
    }
    if (length <= SMALL) return this.#put(framed(sent, length, isCompressed));
    await this.#put(prefixOf(length, isCompressed));
    for (const part of sent) {
      for (let at = 0; at < part.length; at += SLICE) await this.#put(part.subarray(at, at + SLICE));
    }
  }

  #compresses(length: number): boolean {
    return this.#options.coding !== null && length >= MIN_COMPRESSED;
  }

  #put(bytes: Uint8Array): Promise<void> {
    const stream = this.#stream;
    if (stream.destroyed || stream.closed) return Promise.reject(hasLeft());
    if (stream.write(bytes)) return Promise.resolve();
    const { stallLimitMs, onStall } = this.#options;
    return new Promise((resolve, reject) => {
      const settle = () => {
        clearTimeout(timer);
        stream.off('drain', settle);
        stream.off('close', settle);
        if (stream.destroyed || stream.closed) reject(hasLeft());
        else resolve();
      };
      const timer = stallLimitMs === undefined ? undefined : setTimeout(onStall, stallLimitMs);
      stream.on('drain', settle);
      stream.on('close', settle);
    });
  }
}

function prefixOf(length: number, isCompressed: boolean): Buffer {
  const prefix = Buffer.allocUnsafe(PREFIX);
  prefix[0] = Number(isCompressed);
  prefix.writeUInt32BE(length, 1);
  return prefix;
}

/** A message as it is sent, in one piece. */
function framed(parts: readonly Uint8Array[], length: number, isCompressed: boolean): Buffer {
  return Buffer.concat([prefixOf(length, isCompressed), ...parts], PREFIX + length);
}

function hasLeft(): GrpcError {
  return new GrpcError('CANCELLED', 'The client has left.');
}

function lengthOf(parts: readonly Uint8Array[]): number {
  return parts.reduce((sum, { length }) => sum + length, 0);
}

async function collected(source: AsyncIterable<Uint8Array>): Promise<Uint8Array[]> {
  const parts: Uint8Array[] = [];
  for await (const part of source) parts.push(part);
  return parts;
}
