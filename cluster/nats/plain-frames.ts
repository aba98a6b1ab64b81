import type { FramesMessage } from './messages.js';
import { areRuns } from './token-runs.js';

/** The JSON that `packMessage` makes of a message of frames that is nothing but runs. A worker's name is a word: see isWord. */
const PLAIN =
  /^\{"kind":"frames","worker":"([\w-]{1,64})","frames":\[\],"failures":\[\],"runs":\{"\$":"i([1-9]\d{0,9})"\}\}$/;
/** Bytes of such a JSON at most. */
const MAX_JSON_BYTES = 160;

/** Words that V8 keeps in its own heap; longer arrays have memory that its collector has to free one by one. */
const MAX_LONE_WORDS = 16;

const latin1 = Buffer.prototype.latin1Slice;

/**
 * Reads a message of frames that is nothing but runs, as nearly all messages of a busy fleet are: thousands a second, of which most of the
 * cost would be a general reader's. null: it is another message, or a wrong one, for which that reader has the words.
 */
export function readPlainFrames(bytes: Uint8Array): FramesMessage | null {
  const { byteLength } = bytes;
  const jsonBytes = bytes[0]! | (bytes[1]! << 8);
  const begin = 4 + jsonBytes;
  if (bytes[2] !== 0 || bytes[3] !== 0 || jsonBytes > MAX_JSON_BYTES || begin > byteLength) return null;
  const match = PLAIN.exec(latin1.call(bytes, 4, begin));
  if (match === null || byteLength - begin !== Int32Array.BYTES_PER_ELEMENT * Number(match[2])) return null;
  const runs = wordsOf(bytes, begin);
  return areRuns(runs) ? { kind: 'frames', worker: match[1]!, frames: [], failures: [], runs } : null;
}

/** Words from `begin` to the end, copied: they lie at any address, among those of other messages. A few are copied without a buffer of their own. */
function wordsOf(bytes: Uint8Array, begin: number): Int32Array {
  const count = (bytes.byteLength - begin) / Int32Array.BYTES_PER_ELEMENT;
  if (count > MAX_LONE_WORDS) {
    const from = bytes.byteOffset + begin;
    return new Int32Array(bytes.buffer.slice(from, bytes.byteOffset + bytes.byteLength) as ArrayBuffer);
  }
  const words = new Int32Array(count);
  for (let i = 0, at = begin; i < count; i += 1, at += 4)
    words[i] = bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24);
  return words;
}
