import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { areRuns, RunWriter, readRuns, runBytes, type TokenRun } from '../../../cluster/nats/token-runs.js';

const small = fc.integer({ min: 0, max: 2 ** 31 - 1 });
const run: fc.Arbitrary<TokenRun> = fc.record({
  number: fc.oneof(fc.nat(9), fc.maxSafeNat(), fc.constantFrom(2 ** 31, 2 ** 32 - 1, 2 ** 32)),
  attempt: small,
  sequence: small,
  index: small,
  tokens: fc
    .array(fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 }), { maxLength: 300 })
    .map((list) => Int32Array.from(list)),
});

function written(runs: readonly TokenRun[]): Int32Array {
  const writer = new RunWriter();
  for (const { number, attempt, sequence, index, tokens } of runs)
    writer.add(number, attempt, sequence, index, tokens);
  expect(writer.isEmpty).toBe(runs.length === 0);
  return writer.words;
}

describe('runs of tokens', () => {
  it('are read as they were written, and take the bytes that were counted', () => {
    fc.assert(
      fc.property(fc.array(run, { maxLength: 6 }), (runs) => {
        const words = written(runs);
        expect(words.byteLength).toBe(runs.reduce((sum, { tokens }) => sum + runBytes(tokens), 0));
        expect(areRuns(words)).toBe(true);
        expect([...readRuns(words)]).toEqual(runs);
      }),
    );
  });

  it('are told from other numbers: what is cut short, or counts backwards', () => {
    const words = written([
      { number: 7, attempt: 1, sequence: 0, index: 3, tokens: Int32Array.of(5, 6) },
      { number: 8, attempt: 2, sequence: 1, index: 0, tokens: Int32Array.of(9) },
    ]);
    for (let length = 0; length <= words.length; length++)
      expect(areRuns(words.subarray(0, length))).toBe([0, 8, words.length].includes(length));
    for (const at of [1, 2, 3, 4, 5]) {
      const other = words.slice();
      other[at] = -1;
      expect(areRuns(other)).toBe(false);
    }
  });

  it('are read to an end, whatever the numbers are', () => {
    fc.assert(
      fc.property(fc.int32Array({ maxLength: 40 }), (words) => {
        if (areRuns(words)) expect([...readRuns(words)].length).toBeLessThanOrEqual(words.length / 6);
      }),
    );
  });
});
