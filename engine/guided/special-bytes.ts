/** Two bytes that never occur in UTF-8. */
const BEGIN = 0xff;
const END = 0xfe;

/**
 * Bytes that stand for a special token in guides: no text contains them, so that only a guide that names the token allows
 * it.
 */
export function specialBytes(text: string): Uint8Array {
  return Uint8Array.from([BEGIN, ...Buffer.from(text), END]);
}

/**
 * True if the bytes could be a part of a special token: no text contains these, but vocabularies of bytes have a token for
 * each byte.
 */
export function hasSpecialBytes(bytes: Uint8Array): boolean {
  return bytes.includes(BEGIN) || bytes.includes(END);
}
