import type { KeptMessage } from './compaction-state.js';

/** Bytes of a token, by estimate. */
const TOKEN_BYTES = 4;

/** Where a message was cut. */
const CUT = '\n[...]\n';

/**
 * The messages that stay when a conversation is compacted: the newest that fit. The first that does not fit is cut in its
 * middle, and what is older is left out.
 * @param maxTokens most tokens of all together, by estimate. @param maxMessages most messages
 */
export function keptMessages<T extends Pick<KeptMessage, 'text'>>(
  messages: readonly T[],
  maxTokens: number,
  maxMessages: number,
): T[] {
  const kept: T[] = [];
  let left = maxTokens * TOKEN_BYTES;
  for (const message of messages.toReversed()) {
    if (left <= 0 || kept.length === maxMessages) break;
    const bytes = Buffer.byteLength(message.text);
    kept.unshift(bytes <= left ? message : { ...message, text: shortened(message.text, left) });
    left -= Math.max(1, bytes);
  }
  return kept;
}

/** The beginning and the end of a text, at most so many bytes together. */
function shortened(text: string, maxBytes: number): string {
  const bytes = Buffer.from(text);
  const half = Math.floor(maxBytes / 2);
  const start = new TextDecoder().decode(bytes.subarray(0, half), { stream: true });
  const end = endOf(bytes, half);
  return `${start}${CUT}${end}`;
}

/** The last bytes of a text, from the beginning of a character on. */
function endOf(bytes: Buffer, length: number): string {
  let from = bytes.length - length;
  while (from < bytes.length && (bytes[from]! & 0xc0) === 0x80) from++;
  return bytes.toString('utf8', from);
}
