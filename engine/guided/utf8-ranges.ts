/** One range of values for each byte of a character, first byte first. */
export type ByteRanges = readonly (readonly [number, number])[];

const LAST_OF_LENGTH = [0x7f, 0x7ff, 0xffff, 0x10ffff];

/**
 * The code points low..high as UTF-8: sequences of byte ranges that together match exactly their encodings.
 *
 *   U+00E9..U+0905    [C3][A9..BF]  [C4..DF][80..BF]  [E0][A0..A3][80..BF]  [E0][A4][80..85]
 *
 * The result has neither overlong forms nor surrogates unless surrogates are asked for.
 */
function utf8Ranges(low: number, high: number): ByteRanges[] {
  const found: ByteRanges[] = [];
  let first = low;
  for (const last of LAST_OF_LENGTH) {
    if (first > last) continue;
    if (first > high) break;
    split(first, Math.min(high, last), found);
    first = last + 1;
  }
  return found;
}

/** Splits a range whose ends have the same number of bytes. */
function split(low: number, high: number, found: ByteRanges[]): void {
  if (high <= 0x7f) {
    found.push([[low, high]]);
    return;
  }
  // If the ends differ in more than their last 6, 12 or 18 bits, the range between must be whole there.
  for (let bits = 6; bits <= 18; bits += 6) {
    const mask = (1 << bits) - 1;
    if ((low & ~mask) === (high & ~mask)) continue;
    if ((low & mask) !== 0) {
      split(low, low | mask, found);
      split((low | mask) + 1, high, found);
      return;
    }
    if ((high & mask) !== mask) {
      split(low, (high & ~mask) - 1, found);
      split(high & ~mask, high, found);
      return;
    }
  }
  const ends = encoded(low);
  const last = encoded(high);
  found.push(ends.map((byte, i) => [byte, last[i]!] as const));
}

function encoded(codePoint: number): number[] {
  if (codePoint <= 0x7f) return [codePoint];
  if (codePoint <= 0x7ff) return [0xc0 | (codePoint >> 6), 0x80 | (codePoint & 63)];
  const tail = [0x80 | ((codePoint >> 6) & 63), 0x80 | (codePoint & 63)];
  if (codePoint <= 0xffff) return [0xe0 | (codePoint >> 12), ...tail];
  return [0xf0 | (codePoint >> 18), 0x80 | ((codePoint >> 12) & 63), ...tail];
}

/** One character of some ranges, as edges over bytes between states. */
export interface CharacterBytes {
  /** Number of states between the first and the last, numbered from 0. */
  readonly states: number;
  readonly edges: number;
  /**
   * (from, low, high, to) for each edge; OUTSIDE as `from` is the state in front of the character, as `to`
   * the one after it.
   */
  readonly ways: readonly number[];
}

export const OUTSIDE = -1;
const known = new WeakMap<object, CharacterBytes>();

/**
 * Byte edges of some ranges. Sequences with the same rest share it. Results are kept with the ranges, since repetitions ask
 * for them again and again.
 */
export function characterBytes(ranges: readonly (readonly [number, number])[]): CharacterBytes {
  let made = known.get(ranges);
  if (made === undefined) {
    const ways: number[] = [];
    const shared = new Map<string, number>();
    let states = 0;
    const add = (bytes: ByteRanges, from: number): void => {
      const [low, high] = bytes[0]!;
      if (bytes.length === 1) {
        ways.push(from, low, high, OUTSIDE);
        return;
      }
      const rest = bytes.slice(1);
      const key = rest.join();
      let next = shared.get(key);
      if (next === undefined) {
        next = states++;
        shared.set(key, next);
        add(rest, next);
      }
      ways.push(from, low, high, next);
    };
    for (const [low, high] of ranges) for (const bytes of utf8Ranges(low, high)) add(bytes, OUTSIDE);
    made = { states, edges: ways.length / 4, ways };
    known.set(ranges, made);
  }
  return made;
}
