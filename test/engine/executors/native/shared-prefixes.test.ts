import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { PrefixTables } from '../../../../engine/executors/native/addon.js';
import { loadAddon } from '../../../../engine/executors/native/load-addon.js';
import { draws } from '../../../support/scale.js';

/** A sequence: its blocks, its tokens with those of the iteration, and how many of them are the iteration's. */
interface Sequence {
  blocks: number[];
  length: number;
  rows: number;
}

function tablesOf(sequences: readonly Sequence[], limits: Partial<PrefixTables> = {}): PrefixTables {
  const maxBlocks = Math.max(1, ...sequences.map(({ blocks }) => blocks.length));
  const blockTables = new Int32Array(sequences.length * maxBlocks).fill(-1);
  const queryStart = [0];
  for (const [s, { blocks, rows }] of sequences.entries()) {
    blockTables.set(blocks, s * maxBlocks);
    queryStart.push(queryStart[s]! + rows);
  }
  return {
    ...{ tokensPerBlock: 16, rows: 16, splitRows: 1000, maxBlocks, blockTables, ...limits },
    contextLength: Int32Array.from(sequences, ({ length }) => length),
    queryStart: Int32Array.from(queryStart),
  };
}

const groupsOf = (sequences: readonly Sequence[], limits: Partial<PrefixTables> = {}) =>
  loadAddon().sharedPrefixes(tablesOf(sequences, limits));

/** Cached blocks that are full, of one token a row. */
const generating = (blocks: number[], rows = 1): Sequence => ({
  blocks: [...blocks, 9000],
  length: blocks.length * 16 + rows,
  rows,
});

describe('sequences that share cached blocks', () => {
  it('are found wherever they stand, as many at once as a pass has rows', () => {
    const shared = [7, 2, 9, 4, 5, 6];
    const sequences = Array.from({ length: 40 }, (_, i) =>
      generating(i % 2 === 0 ? [...shared, 100 + i] : [200 + i]),
    );
    const groups = groupsOf(sequences);
    expect(groups.map(({ members }) => members)).toEqual([
      Array.from({ length: 16 }, (_, i) => 2 * i),
      Array.from({ length: 4 }, (_, i) => 32 + 2 * i),
    ]);
    expect(groups.map(({ tokens }) => tokens)).toEqual([96, 96]);
  });

  it('stay apart if what they share is short, lies elsewhere, or is not cached yet', () => {
    expect(groupsOf([generating([1, 2, 3]), generating([1, 2, 3])])).toEqual([]);
    expect(groupsOf([generating([1, 2, 3, 4]), generating([8, 1, 2, 3, 4])])).toEqual([]);
    expect(groupsOf([generating([1, 2, 3, 4]), { blocks: [1, 2, 3, 4], length: 64, rows: 1 }])).toEqual([]);
    expect(groupsOf([generating([1, 2, 3, 4]), generating([1, 2, 3, 4], 5)])).toEqual([]);
    expect(groupsOf([generating([1, 2, 3, 4])])).toEqual([]);
    expect(groupsOf([])).toEqual([]);
  });

  it('are grouped by what saves most: two that share much are not given up for a third that shares little', () => {
    const long = Array.from({ length: 40 }, (_, i) => i);
    const groups = groupsOf([
      generating([...long, 50]),
      generating([...long, 51]),
      generating([...long.slice(0, 5), 52]),
    ]);
    expect(groups).toEqual([{ tokens: 640, members: [0, 1] }]);
    const four = groupsOf([5, 6, 7, 8].map((length) => generating([...long.slice(0, length), 50 + length])));
    expect(four).toEqual([{ tokens: 64, members: [3, 2, 1, 0] }]);
  });

  it('are as many as there is room for their partial results', () => {
    const long = Array.from({ length: 64 }, (_, i) => i);
    const sequences = Array.from({ length: 6 }, (_, i) => generating([...long, 100 + i]));
    expect(groupsOf(sequences, { splitRows: 6 }).map(({ members }) => members)).toEqual([
      [0, 1],
      [2, 3],
      [4, 5],
    ]);
    expect(groupsOf(sequences, { splitRows: 5 })).toEqual([]);
  });
});

const SPLIT = 512;

/** Blocks from a tree with few branches, so that many tables begin alike. */
const sequences = fc.array(
  fc
    .record({
      branches: fc.array(fc.integer({ min: 0, max: 1 }), { minLength: 1, maxLength: 12 }),
      rows: fc.integer({ min: 1, max: 6 }),
      within: fc.integer({ min: 0, max: 15 }),
    })
    .map(({ branches, rows, within }): Sequence => {
      // Two blocks a branch; a block's number encodes the way to it.
      const blocks = branches.flatMap((_, depth) => {
        const way = branches.slice(0, depth + 1).reduce((sum, branch) => 2 * sum + branch, 1);
        return [2 * way, 2 * way + 1];
      });
      return { blocks: [...blocks, 30_000], length: blocks.length * 16 + within + rows, rows };
    }),
  { maxLength: 40 },
);

describe('groups of any sequences', () => {
  it('keep their limits, share what they say, and leave no two neighbours apart that fit together', () => {
    fc.assert(
      fc.property(sequences, fc.constantFrom(4, 16), fc.constantFrom(8, 1000), (all, rows, splitRows) => {
        const cachedBlocks = ({ length, rows: own }: Sequence) => Math.floor((length - own) / 16);
        const splitsOf = (members: readonly number[]) =>
          Math.max(...members.map((s) => Math.ceil(all[s]!.length / SPLIT)));
        const fits = (members: readonly number[]) => {
          const together = members.reduce((sum, s) => sum + all[s]!.rows, 0);
          return together <= rows && together * splitsOf(members) <= splitRows;
        };
        const alike = (a: number, b: number) => {
          let count = 0;
          const most = Math.min(cachedBlocks(all[a]!), cachedBlocks(all[b]!));
          while (count < most && all[a]!.blocks[count] === all[b]!.blocks[count]) count++;
          return Math.floor((count * 16) / 32) * 32;
        };
        const groups = groupsOf(all, { rows, splitRows });
        const grouped = groups.flatMap(({ members }) => members);
        expect(new Set(grouped).size).toBe(grouped.length);
        for (const { tokens, members } of groups) {
          expect(members.length).toBeGreaterThan(1);
          expect(fits(members)).toBe(true);
          expect(tokens).toBe(Math.min(...members.map((member) => alike(members[0]!, member))));
          expect(tokens).toBeGreaterThanOrEqual(64);
          for (const member of members) expect(all[member]!.rows).toBeLessThanOrEqual(4);
        }
        const left = all.flatMap((sequence, s) =>
          sequence.rows <= 4 && cachedBlocks(sequence) >= 4 && !grouped.includes(s) ? [s] : [],
        );
        for (const a of left) {
          for (const b of left) {
            const between = all.some(
              (_, s) => s !== a && s !== b && alike(a, s) >= alike(a, b) && alike(s, b) >= alike(a, b),
            );
            expect(a < b && !between && alike(a, b) >= 64 && fits([a, b])).toBe(false);
          }
        }
      }),
      { numRuns: draws(100) },
    );
  });
});
