/**
 * Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011), as in the native sampler: a random
 * number is a pure function of a key and a counter, so it never depends on what else is sampled.
 */
export interface PhiloxKey {
  seed: bigint;
  sequenceIndex: number;
  /** Position of the drawn token. */
  position: number;
}

/**
 * Uniform in [0, 1) with 53 bits.
 *
 *   key      seed (low word, high word)
 *   counter  sequence index, position of the drawn token, number of the draw at this position, 0
 */
export function philoxUniform({ seed, sequenceIndex, position }: PhiloxKey, draw: number): number {
  const low = Number(seed & 0xffffffffn);
  const high = Number(seed >> 32n);
  const [first, second] = philox4x32([sequenceIndex, position, draw, 0], [low, high]);
  return (first! * 2 ** 21 + (second! >>> 11)) * 2 ** -53;
}

/** Computes [4] words from counter [4] and key [2]; all are unsigned words of 32 bits. */
export function philox4x32(counter: readonly number[], key: readonly number[]): number[] {
  let [c0, c1, c2, c3] = counter as [number, number, number, number];
  let [k0, k1] = key as [number, number];
  for (let round = 0; round < 10; round++) {
    const first = highWord(0xd2511f53, c0 >>> 0);
    const second = highWord(0xcd9e8d57, c2 >>> 0);
    const firstLow = Math.imul(0xd2511f53, c0);
    const secondLow = Math.imul(0xcd9e8d57, c2);
    c0 = second ^ c1 ^ k0;
    c2 = first ^ c3 ^ k1;
    c1 = secondLow;
    c3 = firstLow;
    k0 = (k0 + 0x9e3779b9) | 0;
    k1 = (k1 + 0xbb67ae85) | 0;
  }
  return [c0 >>> 0, c1 >>> 0, c2 >>> 0, c3 >>> 0];
}

/** Upper 32 bits of the product of two words of 32. */
function highWord(a: number, b: number): number {
  const [aLow, aHigh, bLow, bHigh] = [a & 0xffff, a >>> 16, b & 0xffff, b >>> 16];
  const middle = aHigh * bLow + ((aLow * bLow) >>> 16);
  const other = aLow * bHigh + (middle & 0xffff);
  return aHigh * bHigh + Math.floor(middle / 65536) + Math.floor(other / 65536);
}
