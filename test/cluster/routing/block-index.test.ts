import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { BlockIndex } from '../../../cluster/routing/block-index.js';
import { CachedBeginnings } from '../../../cluster/routing/cached-beginnings.js';
import { draws } from '../../support/scale.js';

const NUM_WORKERS = 12;
const NUM_HASHES = 9;
/** Hashes of the width that caches give. */
const HASHES = Array.from({ length: NUM_HASHES }, (_, index) => (index + 1) * 2 ** 32 + 7 * index);
const worker = fc.integer({ min: 0, max: NUM_WORKERS - 1 });
const hash = fc.constantFrom(...HASHES);
const step = fc.oneof(
  {
    weight: 12,
    arbitrary: fc.record({ do: fc.constantFrom('add' as const, 'addAgain' as const), worker, hash }),
  },
  {
    weight: 5,
    arbitrary: fc.record({ do: fc.constantFrom('remove' as const, 'removeOnce' as const), worker, hash }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('clear' as const), worker, hash }) },
);
const steps = fc.array(step, { minLength: 30, maxLength: 200 });

/** How often each worker has noted each block. */
class SlowIndex {
  readonly counts = Array.from({ length: NUM_WORKERS }, () => new Map<number, number>());
  readonly #maxBlocks: number;

  constructor(maxBlocks: number) {
    this.#maxBlocks = maxBlocks;
  }

  get size(): number {
    return this.counts.reduce((sum, { size }) => sum + size, 0);
  }

  apply({ do: what, worker: index, hash: one }: { do: string; worker: number; hash: number }): void {
    const counts = this.counts[index]!;
    const count = counts.get(one) ?? 0;
    if (what === 'add' && count === 0 && this.size < this.#maxBlocks) counts.set(one, 1);
    if (what === 'addAgain') counts.set(one, count + 1);
    if (what === 'removeOnce' && count > 1) counts.set(one, count - 1);
    else if (what === 'removeOnce' || what === 'remove') counts.delete(one);
    if (what === 'clear') counts.clear();
  }

  holdersOf(one: number): number[] {
    return this.counts.flatMap((counts, index) => (counts.has(one) ? [index] : []));
  }
}

function holdersOf(index: BlockIndex, one: number): number[] {
  const holders: number[] = [];
  for (let pair = index.first(one); pair >= 0; pair = index.next(pair)) holders.push(index.workerOf(pair));
  return holders.sort((a, b) => a - b);
}

describe('an index of blocks', () => {
  it('has the workers of each block and the blocks of each worker, in random histories', () => {
    fc.assert(
      fc.property(steps, fc.constantFrom(5, 40, 1000), (history, maxBlocks) => {
        const [fast, slow] = [new BlockIndex(maxBlocks), new SlowIndex(maxBlocks)];
        for (const one of history) {
          fast[one.do](one.worker, one.hash);
          slow.apply(one);
          expect(fast.size).toBe(slow.size);
        }
        for (const one of HASHES) expect(holdersOf(fast, one)).toEqual(slow.holdersOf(one));
        for (const [index, counts] of slow.counts.entries()) {
          expect(fast.sizeOf(index)).toBe(counts.size);
          expect(HASHES.filter((one) => fast.holds(index, one))).toEqual(
            HASHES.filter((one) => counts.has(one)),
          );
        }
      }),
      { seed: 26, numRuns: draws(100) },
    );
  });

  it('tells how much of a beginning each worker has, and at most has', () => {
    let numTight = 0;
    let numCut = 0;
    fc.assert(
      fc.property(
        steps,
        steps,
        fc.array(hash, { maxLength: 8 }),
        fc.integer({ min: 0, max: 5 }),
        fc.constantFrom(0, 1, 2, NUM_WORKERS, Number.POSITIVE_INFINITY),
        (a, b, asked, few, listed) => {
          const [there, coming] = [new BlockIndex(1000), new BlockIndex(1000)];
          for (const one of a) there[one.do](one.worker, one.hash);
          for (const one of b.slice(0, 30)) coming[one.do](one.worker, one.hash);
          const beginnings = new CachedBeginnings(there, coming, few);
          // What an earlier search has found is nothing to the next one.
          beginnings.look(HASHES, Number.POSITIVE_INFINITY);
          beginnings.look(asked, listed);
          if (beginnings.mostOfRest > 0) numCut += 1;
          for (let index = 0; index <= NUM_WORKERS; index += 1) {
            const missing = asked.findIndex((one) => !there.holds(index, one) && !coming.holds(index, one));
            const length = missing < 0 ? asked.length : missing;
            expect(beginnings.lengthAt(index)).toBe(length);
            expect(beginnings.mostAt(index)).toBeGreaterThanOrEqual(length);
            if (beginnings.mostAt(index) < asked.length) numTight += 1;
          }
        },
      ),
      { seed: 26, numRuns: draws(100) },
    );
    expect(numTight).toBeGreaterThan(200);
    expect(numCut).toBeGreaterThan(20);
  });
});
