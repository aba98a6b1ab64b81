import { performance } from 'node:perf_hooks';
import { cutText } from '../../base/error-text.js';

/** Lines and bytes that an instance may write in a second: they pass through the host's thread, which everybody shares. */
export const MAX_LINES = 500;
export const MAX_BYTES = 128 * 1024;
/** Characters of a line. */
export const LONGEST_LINE = 8192;
const WINDOW_MS = 1000;

/**
 * Says what of an instance's output is written: as much as a second has room for, in whole lines. The rest is
 * counted, and reported in one line when the second is over.
 *
 *   written    | a b c ... (500 lines) |                    | d e
 *   left out   |                       f g h ... |          |
 *   reported                                     '- at the end of the second: "299,500 lines left out"
 */
export class OutputLimit {
  #beganMs = Number.NEGATIVE_INFINITY;
  #lines = 0;
  #bytes = 0;
  #numLeftOut = 0;

  /** What of a text is written now. @param nowMs on a clock that never goes back */
  take(text: string, nowMs: number): string {
    if (nowMs - this.#beganMs >= WINDOW_MS) {
      this.#beganMs = nowMs;
      this.#lines = 0;
      this.#bytes = 0;
    }
    let written = '';
    let begin = 0;
    while (begin < text.length && this.#lines < MAX_LINES) {
      const newline = text.indexOf('\n', begin);
      const end = newline < 0 ? text.length : newline;
      const line = cutText(text.slice(begin, end), LONGEST_LINE) + (newline < 0 ? '' : '\n');
      const bytes = Buffer.byteLength(line);
      if (this.#bytes + bytes > MAX_BYTES) break;
      this.#lines++;
      this.#bytes += bytes;
      written += line;
      begin = newline < 0 ? text.length : newline + 1;
    }
    this.#numLeftOut += linesFrom(text, begin);
    return written;
  }

  /** Lines that were left out since this was asked last. */
  takeLeftOut(): number {
    const count = this.#numLeftOut;
    this.#numLeftOut = 0;
    return count;
  }

  get hasLeftOut(): boolean {
    return this.#numLeftOut > 0;
  }

  msLeft(nowMs: number): number {
    return Math.max(0, this.#beganMs + WINDOW_MS - nowMs);
  }
}

function linesFrom(text: string, begin: number): number {
  if (begin >= text.length) return 0;
  let count = text.endsWith('\n') ? 0 : 1;
  for (let at = text.indexOf('\n', begin); at >= 0; at = text.indexOf('\n', at + 1)) count++;
  return count;
}

/**
 * Puts a limit on what the code of this thread writes to stdout and stderr, together, before it is sent to the main thread.
 * @param who writes, as the line about what is left out calls it
 */
export function boundOutput(who: string): void {
  const limit = new OutputLimit();
  const { stdout, stderr } = process;
  const writeError = stderr.write.bind(stderr);
  let timer: NodeJS.Timeout | null = null;
  const tell = () => {
    timer = null;
    const count = limit.takeLeftOut();
    if (count === 0) return;
    const most = `${MAX_LINES} lines and ${MAX_BYTES.toLocaleString('en')} bytes`;
    writeError(
      `skein: ${who}: ${count.toLocaleString('en')} lines left out; it may write ${most} a second\n`,
    );
  };
  process.on('exit', tell);
  for (const stream of [stdout, stderr]) {
    const write = stream.write.bind(stream);
    stream.write = (chunk: unknown, encoding?: unknown, done?: unknown): boolean => {
      const onWritten = [encoding, done].find((one) => typeof one === 'function') as (() => void) | undefined;
      const text = textOf(chunk, encoding);
      const written = limit.take(text, performance.now());
      if (limit.hasLeftOut && timer === null) {
        timer = setTimeout(tell, limit.msLeft(performance.now()));
        timer.unref();
      }
      // A character may lie in two chunks of bytes: those are written as they are.
      const given = typeof encoding === 'string' ? (encoding as BufferEncoding) : undefined;
      if (written === text) return write(chunk as string, given, onWritten);
      if (written !== '') return write(written, onWritten);
      if (onWritten !== undefined) queueMicrotask(onWritten);
      return true;
    };
    const end = stream.end.bind(stream) as (done?: () => void) => typeof stream;
    const boundedEnd = (chunk?: unknown, encoding?: unknown, done?: unknown) => {
      const onEnded = [chunk, encoding, done].find((one) => typeof one === 'function');
      if (chunk !== undefined && chunk !== null && typeof chunk !== 'function') {
        stream.write(
          chunk as string,
          typeof encoding === 'string' ? (encoding as BufferEncoding) : undefined,
        );
      }
      return end(onEnded as (() => void) | undefined);
    };
    Object.assign(stream, { end: boundedEnd });
  }
}

/** What was written, as text. @throws a TypeError as the stream would */
function textOf(chunk: unknown, encoding: unknown): string {
  if (ArrayBuffer.isView(chunk)) {
    return Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength).toString();
  }
  if (typeof chunk !== 'string') {
    throw new TypeError(`Text or bytes are expected to be written; a ${typeof chunk} was given.`);
  }
  const isBytes = encoding === 'hex' || encoding === 'base64' || encoding === 'base64url';
  return isBytes ? Buffer.from(chunk, encoding).toString() : chunk;
}
