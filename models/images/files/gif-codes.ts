import { damaged } from './damaged.js';

/** Codes of GIF's compression have at most 12 bits. */
const MAX_BITS = 12;
const MAX_CODES = 2 ** MAX_BITS;

/**
 * Unpacks a frame's codes (Lempel, Ziv and Welch) into as many colour numbers as it has pixels. What follows them is not read.
 * @param bits of a colour number @param codes the contents of all blocks @throws PictureError where they break off, or a code is unknown
 */
export function unpackedColours(codes: Uint8Array, bits: number, pixels: number): Uint8Array {
  const clear = 1 << bits;
  const result = new Uint8Array(pixels);
  // A code is the text of another one and a colour after it.
  const before = new Uint16Array(MAX_CODES);
  const last = new Uint8Array(MAX_CODES);
  const lengths = new Uint16Array(MAX_CODES);
  for (let colour = 0; colour < clear; colour++) {
    last[colour] = colour;
    lengths[colour] = 1;
  }
  let size = bits + 1;
  let next = clear + 2;
  let previous = -1;
  let held = 0;
  let heldBits = 0;
  let at = 0;
  let filled = 0;
  while (filled < pixels) {
    while (heldBits < size) {
      if (at === codes.length) throw damaged('GIF', 'it breaks off in its first frame');
      held |= codes[at++]! << heldBits;
      heldBits += 8;
    }
    const code = held & ((1 << size) - 1);
    held >>>= size;
    heldBits -= size;
    if (code === clear) {
      size = bits + 1;
      next = clear + 2;
      previous = -1;
      continue;
    }
    if (code === clear + 1) throw damaged('GIF', 'its first frame ends too early');
    if (code > next || (code === next && previous < 0)) throw damaged('GIF', 'it has an unknown code');
    const text = code === next ? previous : code;
    const length = lengths[text]!;
    // Texts are written from their ends; what is longer than the picture is cut.
    let first = text;
    for (let i = filled + length - 1; i >= filled; i--) {
      if (i < pixels) result[i] = last[first]!;
      if (i > filled) first = before[first]!;
    }
    filled += length;
    if (code === next && filled < pixels) result[filled] = last[first]!;
    if (code === next) filled++;
    if (previous >= 0 && next < MAX_CODES) {
      before[next] = previous;
      last[next] = last[first]!;
      lengths[next] = lengths[previous]! + 1;
      next++;
      if (next === 1 << size && size < MAX_BITS) size++;
    }
    previous = code;
  }
  return result;
}
