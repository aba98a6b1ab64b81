import { readExactly, withFile } from '../file-reading.js';
import type { RawTensor } from '../raw-tensor.js';

/** Bytes that are read at a time. */
const PIECE_BYTES = 1024 * 1024;

/**
 * True if a test holds for each word of 32 bits of a tensor, which is read up to the first one for which it does not.
 * Zero points and orders of columns, which decide how a matrix is read, are a hundredth of its bytes.
 */
export function everyWord(
  { file, offset, byteLength }: RawTensor,
  test: (word: number, index: number) => boolean,
): boolean {
  const total = byteLength! - (byteLength! % 4);
  const buffer = Buffer.alloc(Math.min(PIECE_BYTES, total));
  return withFile(file, (fd) => {
    for (let done = 0; done < total; done += PIECE_BYTES) {
      const piece = buffer.subarray(0, Math.min(PIECE_BYTES, total - done));
      readExactly(file, fd, piece, offset + done);
      for (let at = 0; at < piece.length; at += 4) {
        if (!test(piece.readInt32LE(at), (done + at) / 4)) return false;
      }
    }
    return true;
  });
}

/**
 * True if each column is in the group that its place gives it, or if the order says -1, as for none.
 *
 * @param order I32, a group for each column
 */
export function isInOrder(order: RawTensor, columnsEach: number): boolean {
  return everyWord(order, (group, column) => group === -1 || group === Math.floor(column / columnsEach));
}
