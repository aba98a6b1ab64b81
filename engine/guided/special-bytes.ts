/** No byte of UTF-8 is one of these. */
const BEGIN = 0xff;
const END = 0xfe;

/**
 * The bytes that stand for a special token in guides: nothing that a text could hold, so that only a guide which names the
 * token lets it be chosen.
 */
export function specialBytes(text: string): Uint8Array {
  return Uint8Array.from([BEGIN, ...Buffer.from(text), END]);
}

/** Whether bytes could spell a part of a special token: no text has them, but vocabularies of bytes have a token for each. */
export function hasSpecialBytes(bytes: Uint8Array): boolean {
  return bytes.includes(BEGIN) || bytes.includes(END);
}
