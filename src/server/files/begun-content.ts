import { Readable } from 'node:stream';

/**
 * A content whose first piece has been read, so that an unreachable store is noticed before the response
 * headers are sent.
 * @throws what reading it throws
 */
export async function begun(content: AsyncIterable<Buffer>): Promise<AsyncIterable<Buffer>> {
  // A file of this machine is open already.
  if (content instanceof Readable) return content;
  const pieces = content[Symbol.asyncIterator]();
  const first = await pieces.next();
  return first.done ? NOTHING : behind(first.value, pieces);
}

/** A content without a byte. */
export const NOTHING: AsyncIterable<Buffer> = { async *[Symbol.asyncIterator]() {} };

async function* behind(first: Buffer, pieces: AsyncIterator<Buffer>): AsyncGenerator<Buffer> {
  try {
    yield first;
    for (;;) {
      const next = await pieces.next();
      if (next.done) return;
      yield next.value;
    }
  } finally {
    await pieces.return?.();
  }
}
