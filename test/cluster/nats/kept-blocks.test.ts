import { crc32 } from 'node:zlib';
import { expect, it } from 'vitest';
import { KeptBlocks } from '../../../cluster/nats/kept-blocks.js';

const bytes = (length: number, from = 0) => Uint8Array.from({ length }, (_, i) => from + i);
const part = (id: string, attempt: number, offset: number, length: number) => ({
  kind: 'blocks' as const,
  id,
  attempt,
  offset,
  length,
});

it('are given in parts with their sums, and are gone with the last one', () => {
  const kept = new KeptBlocks(100, 50);
  expect(kept.keep('a', 2, bytes(10), 0)).toBe(true);
  expect(kept.room).toBe(90);
  const first = kept.answer(part('a', 2, 6, 4), 8);
  expect(first).toEqual({ kind: 'blocksPart', bytes: bytes(4, 6), sum: crc32(bytes(4, 6)) });
  expect(kept.size).toBe(1);
  expect(kept.answer(part('a', 2, 0, 6), 8).bytes).toEqual(bytes(6));
  expect([kept.size, kept.room]).toEqual([0, 100]);
  expect(kept.answer(part('a', 2, 0, 6), 8).bytes).toHaveLength(0);
});

it('are given for their attempt alone, no more at once than a message holds, and nothing behind their end', () => {
  const kept = new KeptBlocks(100, 50);
  kept.keep('a', 2, bytes(10), 0);
  for (const wrong of [part('a', 1, 0, 4), part('b', 2, 0, 4), part('a', 2, 0, 9), part('a', 2, 40, 4)])
    expect(kept.answer(wrong, 8).bytes).toHaveLength(0);
  expect(kept.size).toBe(1);
});

it('have a bound in sum, and an end in time', () => {
  const kept = new KeptBlocks(16, 50);
  expect(kept.keep('a', 1, bytes(10), 0)).toBe(true);
  expect(kept.keep('b', 1, bytes(7), 0)).toBe(false);
  expect(kept.keep('a', 2, bytes(12), 10)).toBe(true);
  expect(kept.room).toBe(4);
  kept.expire(59);
  expect(kept.size).toBe(1);
  kept.expire(60);
  expect([kept.size, kept.room]).toEqual([0, 16]);
  kept.keep('c', 1, bytes(3), 60);
  kept.release('c');
  kept.release('c');
  expect(kept.room).toBe(16);
});
