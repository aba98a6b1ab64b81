import { describe, expect, it } from 'vitest';
import { GatheredParts } from '../../host/gathered-parts.js';
import type { Part, PartOptions } from '../../host/token-parts.js';
import { Random } from '../../tools/soak/random.js';

/** Entries of a piece: see gathered-parts.ts. */
const MAX_ENTRIES = 4096;

/** `count` tokens from `first` on, with log-probs that show which token they belong to. */
function partOf(first: number, count: number, { returnLogProbs, topLogProbs }: PartOptions): Part {
  const tokens = Int32Array.from({ length: count }, (_, i) => first + i);
  const part: Part = { tokens };
  if (returnLogProbs) part.logProbs = Float32Array.from(tokens, (token) => -token);
  if (topLogProbs > 0) {
    const entries = [...tokens].flatMap((token) => Array.from({ length: topLogProbs }, (_, i) => token + i));
    part.topTokens = Int32Array.from(entries);
    part.topLogProbs = Float32Array.from(entries, (entry) => -entry);
  }
  return part;
}

const none: PartOptions = { returnLogProbs: false, topLogProbs: 0, returnGenerationLogits: false };
const twenty: PartOptions = { ...none, returnLogProbs: true, topLogProbs: 20 };

/** True if two parts hold the same numbers: typed arrays are compared as bytes, which is quick. */
function sameNumbers(a: Part, b: Part): boolean {
  const bytes = (array: Int32Array | Float32Array | undefined) =>
    array === undefined ? null : Buffer.from(array.buffer, array.byteOffset, array.byteLength);
  return (['tokens', 'logProbs', 'topTokens', 'topLogProbs'] as const).every((name) => {
    const [left, right] = [bytes(a[name]), bytes(b[name])];
    return left === null || right === null ? left === right : left.equals(right);
  });
}

describe('what has gathered', () => {
  it.each([
    [none, 100_000, [...Array(24).fill(4096), 1696]],
    [twenty, 1000, [...Array(5).fill(195), 25]],
  ])('is taken in pieces of bounded size, with %o', (options, count, sizes) => {
    const gathered = new GatheredParts(options);
    for (let token = 0; token < count; token++) gathered.add(partOf(token, 1, options));
    expect(gathered.numTokens).toBe(count);
    const taken: number[] = [];
    while (!gathered.isEmpty) taken.push(gathered.take().tokens.length);
    expect(taken).toEqual(sizes);
  });

  it('is cut where one part alone is longer', () => {
    const gathered = new GatheredParts(twenty);
    gathered.add(partOf(0, 400, twenty));
    expect(gathered.take()).toEqual(partOf(0, 195, twenty));
    expect(gathered.take()).toEqual(partOf(195, 195, twenty));
    expect(gathered.take()).toEqual(partOf(390, 10, twenty));
    expect(gathered.isEmpty).toBe(true);
  });

  it('cuts logits with their tokens', () => {
    const options = { ...none, returnGenerationLogits: true };
    const gathered = new GatheredParts(options);
    const generationLogits = Float32Array.from({ length: 3 * 5000 }, (_, i) => i);
    gathered.add({ ...partOf(0, 5000, options), generationLogits });
    expect(gathered.take().generationLogits).toEqual(generationLogits.subarray(0, 3 * 4096));
    expect(gathered.take().generationLogits).toEqual(generationLogits.subarray(3 * 4096));
  });

  it('is an empty part where there is nothing, and nothing once it is cleared', () => {
    const gathered = new GatheredParts(twenty);
    expect(gathered.take()).toEqual(partOf(0, 0, twenty));
    gathered.add(partOf(0, 3, twenty));
    gathered.clear();
    expect([gathered.isEmpty, gathered.numTokens]).toEqual([true, 0]);
  });

  it('comes out whole and in order, however it is put in and taken', () => {
    for (let seed = 1; seed <= 50; seed++) {
      const random = new Random(seed);
      const top = random.integer(0, 20);
      const options = { ...none, returnLogProbs: random.chance(0.5) || top > 0, topLogProbs: top };
      const gathered = new GatheredParts(options);
      let added = 0;
      let taken = 0;
      const take = () => {
        const part = gathered.take();
        const { length } = part.tokens;
        expect(sameNumbers(part, partOf(taken, length, options))).toBe(true);
        expect(length * (options.returnLogProbs ? 1 + top : 1)).toBeLessThanOrEqual(MAX_ENTRIES);
        taken += length;
      };
      for (let step = 0; step < 300; step++) {
        if (random.chance(0.05)) take();
        const count = random.chance(0.02) ? random.integer(0, 999) : random.integer(1, 3);
        gathered.add(partOf(added, count, options));
        added += count;
      }
      while (!gathered.isEmpty) take();
      expect(taken).toBe(added);
    }
  });
});
