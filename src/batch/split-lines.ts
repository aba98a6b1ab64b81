import { createReadStream } from 'node:fs';
import { setImmediate as nextTurn } from 'node:timers/promises';

/** A line of a file, without its end. */
export interface FileLine {
  /** Number of the line, from 1. */
  number: number;
  /** Content of the line; null where it is longer than the limit and was skipped. */
  bytes: Buffer | null;
  /** Offset in the file of the end of this line, after its line feed. */
  end: number;
  /** True where a line feed ended the line. */
  isWhole: boolean;
}

const LINE_FEED = 0x0a;
/** Lines after which others get their turn: a chunk may have as many as it has bytes. */
const LINES_OF_A_TURN = 512;

function readFile(path: string): AsyncIterable<Buffer> {
  return createReadStream(path, { highWaterMark: 2 ** 18 });
}

/**
 * The lines of a file of any length, which is given by its path or by its bytes. Only line feeds separate
 * them: JSON may hold U+2028 as it is, where Node's readline would end a line. An empty rest after the last
 * line feed is no line.
 */
export async function* splitLines(
  source: string | AsyncIterable<Buffer>,
  maxLineBytes: number,
): AsyncGenerator<FileLine> {
  let parts: Buffer[] = [];
  let length = 0;
  let number = 1;
  let end = 0;
  const add = (part: Buffer) => {
    length += part.length;
    end += part.length;
    if (length <= maxLineBytes) parts.push(part);
    else parts = [];
  };
  const take = (isWhole: boolean): FileLine => {
    const bytes = length <= maxLineBytes ? Buffer.concat(parts) : null;
    parts = [];
    length = 0;
    return { number: number++, bytes, end, isWhole };
  };
  for await (const chunk of typeof source === 'string' ? readFile(source) : source) {
    let start = 0;
    for (let at = chunk.indexOf(LINE_FEED); at >= 0; at = chunk.indexOf(LINE_FEED, start)) {
      add(chunk.subarray(start, at));
      end++;
      start = at + 1;
      yield take(true);
      if (number % LINES_OF_A_TURN === 0) await nextTurn();
    }
    if (start < chunk.length) add(Buffer.from(chunk.subarray(start)));
  }
  if (length > 0) yield take(false);
}
