import type { PatternBorders } from './pattern-borders.js';

/** Units of the shortest piece but the last. */
const MIN_UNITS = 32;
/** Units of a piece from which on any border ends it. */
const MANY_UNITS = 2048;
/** Bits that are 0 at one of 64 places: with a border at each fifth unit, as JSON has them, a piece has some three hundred. */
const PLACE_BITS = 6;
/** Spreads a unit over the bits (2^32 by the golden ratio). */
const SPREAD = 0x9e3779b1;

/**
 * Cuts a text into pieces, each of which can be encoded by itself. Which of the borders are taken depends on the 32
 * units in front of them and not on their place, so that a text that stands in two others is cut alike in both, but for its beginning:
 *
 *   one      aaaaaa|bbbbbbbb|cccccccc|dddd
 *   other    xx|yyyyy aaa|bbbbbbbb|cccccccc|eeeeeee
 *
 * The character after a border is followed by another of ASCII, so that no mark changes it (NFC).
 */
export function* piecesOf(text: string, borders: PatternBorders): Generator<string> {
  let start = 0;
  let before = text.charCodeAt(0);
  let mixed = 0;
  for (let at = 1; at < text.length - 1; at++) {
    // A unit is out of the sum when it was moved by as many bits as there are.
    mixed = ((mixed << 1) + Math.imul(before, SPREAD)) | 0;
    const behind = text.charCodeAt(at);
    const isPlace = mixed >>> (32 - PLACE_BITS) === 0 || at - start >= MANY_UNITS;
    if (isPlace && at - start >= MIN_UNITS && text.charCodeAt(at + 1) < 0x80) {
      if (borders.isBetween(before, behind)) {
        yield text.slice(start, at);
        start = at;
      }
    }
    before = behind;
  }
  yield start === 0 ? text : text.slice(start);
}
