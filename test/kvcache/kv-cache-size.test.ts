import { describe, expect, it } from 'vitest';
import type { CacheShape } from '../../kvcache/cache-shape.js';
import { kvBytesPerBlock, kvCacheSize, stateBytesPerSlot, stateSlots } from '../../kvcache/kv-cache-size.js';

const MIB = 2 ** 20;
const options = {
  availableBytes: 1000 * MIB,
  freeMemoryFraction: 0.5,
  bytesPerBlock: MIB,
  tokensPerBlock: 32,
  maxNumSequences: 64,
  maxSeqLen: 2048,
};

describe('kvBytesPerBlock', () => {
  it('adds up what each layer keeps, keys and values apart', () => {
    const caches: CacheShape[] = [
      { kind: 'keysAndValues', kvHeads: 2, keyDim: 5, valueDim: 8 },
      { kind: 'keysAndValues', kvHeads: 1, keyDim: 64, valueDim: 64 },
    ];
    expect(kvBytesPerBlock(caches, 16, 'f32')).toBe(16 * 4 * (2 * (5 + 8) + 128));
    expect(kvBytesPerBlock(caches, 16, 'bf16')).toBe(16 * 2 * (2 * (5 + 8) + 128));
    // Pairs of bytes and a scale for a key, bytes and a scale for a value.
    expect(kvBytesPerBlock(caches, 16, 'int8')).toBe(16 * (2 * (6 + 4 + 8 + 4) + 64 + 4 + 64 + 4));
    expect(kvBytesPerBlock([], 16, 'f32')).toBe(0);
  });

  it('counts keys and values of all layers', () => {
    const layers = (headDim: number) =>
      Array.from(
        { length: 30 },
        (): CacheShape => ({
          kind: 'keysAndValues',
          kvHeads: 3,
          keyDim: headDim,
          valueDim: headDim,
        }),
      );
    expect(kvBytesPerBlock(layers(64), 32, 'bf16')).toBe(2 * 30 * 3 * 64 * 32 * 2);
    expect(kvBytesPerBlock(layers(64), 32, 'f32')).toBe(2 * 30 * 3 * 64 * 32 * 4);
    expect(kvBytesPerBlock(layers(64), 32, 'int8')).toBe(2 * 30 * 3 * (64 + 4) * 32);
    // Keys come in pairs of dimensions.
    expect(kvBytesPerBlock(layers(9), 8, 'int8')).toBe(30 * 3 * (10 + 9 + 8) * 8);
  });
});

describe('kvCacheSize', () => {
  it('counts blocks without bytes by the sequences that they are for, and no more than lists may hold', () => {
    const empty = { ...options, bytesPerBlock: 0 };
    expect(kvCacheSize(empty)).toEqual({
      numBlocks: 4096,
      bytes: 0,
      limitedBy: 'maxNumSequences x maxSeqLen',
    });
    expect(kvCacheSize({ ...empty, availableBytes: 0 }).numBlocks).toBe(4096);
    const long = { ...empty, maxSeqLen: 2 ** 20 };
    expect(kvCacheSize(long)).toEqual({ numBlocks: 2 ** 20, bytes: 0, limitedBy: 'memory' });
    expect(kvCacheSize({ ...long, maxSeqLen: 2 ** 26 }).numBlocks).toBe(2 ** 21);
    expect(kvCacheSize({ ...long, maxTokens: 2 ** 21 }).numBlocks).toBe(2 ** 16);
  });

  it.each([
    ['memory', {}, 500],
    ['memory', { freeMemoryFraction: 0.1299 }, 129],
    ['maxTokens', { maxTokens: 10_000 }, 313],
    ['memory', { maxTokens: 16_001 }, 500],
    ['maxNumSequences x maxSeqLen', { maxNumSequences: 4 }, 256],
    ['maxNumSequences x maxSeqLen', { maxNumSequences: 4, maxSeqLen: 2017, maxTokens: 100_000 }, 256],
    ['maxTokens', { maxNumSequences: 4, maxTokens: 2048 }, 64],
  ] as const)('is limited by %s: %j', (limitedBy, change, numBlocks) => {
    expect(kvCacheSize({ ...options, ...change })).toEqual({ numBlocks, bytes: numBlocks * MIB, limitedBy });
  });

  it.each([
    [
      { availableBytes: 126 * MIB },
      'One sequence of maxSeqLen = 2048 tokens needs 64 KV cache blocks of 32 tokens (64.0 MiB), but 63 fit into ' +
        '0.5 of the 126.0 MiB of memory available. Give it more memory or lower maxSeqLen.',
    ],
    [
      { availableBytes: 0, availableFrom: '/sys/fs/cgroup/memory.max = 1 bytes' },
      'but 0 fit into 0.5 of the 0.0 MiB of memory available (/sys/fs/cgroup/memory.max = 1 bytes).',
    ],
    [
      { maxTokens: 2000 },
      'needs 64 KV cache blocks of 32 tokens (64.0 MiB), but maxTokens = 2000 allows 63. ' +
        'Raise maxTokens or lower maxSeqLen.',
    ],
    [{ freeMemoryFraction: 0 }, 'The fraction of free memory for the KV cache is 0; above 0 and at most 1'],
    [{ freeMemoryFraction: 1.1 }, 'The fraction of free memory for the KV cache is 1.1;'],
    [{ availableBytes: Number.NaN }, 'The available memory is NaN bytes; a finite number is expected.'],
    [{ maxTokens: 0 }, 'maxTokens is 0; a whole number of at least 1 is expected.'],
    [{ bytesPerBlock: 0.5 }, 'bytesPerBlock is 0.5; a whole number of at least 0 is expected.'],
  ])('refuses %j', (change, sentence) => {
    expect(() => kvCacheSize({ ...options, ...change })).toThrow(sentence);
  });
});

describe('the slots for states of sequences', () => {
  it('take whole cache lines for each state', () => {
    expect(stateBytesPerSlot([])).toBe(0);
    expect(stateBytesPerSlot([{ size: 1 }, { size: 16 }, { size: 17 }])).toBe(64 + 64 + 128);
  });

  const budget = {
    bytesPerSlot: MIB,
    availableBytes: 100 * MIB,
    fraction: 0.3,
    maxSequences: 8,
    maxBeamWidth: 1,
    mostSnapshots: 1000,
  };
  it.each([
    ['one for each sequence, the rest for snapshots', {}, [8, 22]],
    ['no more snapshots than blocks', { mostSnapshots: 5 }, [8, 5]],
    ['half for snapshots where sequences wait', { maxSequences: 64 }, [15, 15]],
    ['all for sequences where no snapshot is made', { maxSequences: 64, mostSnapshots: 0 }, [30, 0]],
    ['those of one request before snapshots', { maxSequences: 64, maxBeamWidth: 20 }, [20, 10]],
    ['just one', { availableBytes: 4 * MIB }, [1, 0]],
    [
      'no more than an executor numbers',
      { availableBytes: 2 ** 50, mostSnapshots: 2 ** 30 },
      [8, 2 ** 20 - 9],
    ],
    ['of many sequences too', { availableBytes: 2 ** 50, maxSequences: 2 ** 30 }, [2 ** 19, 1000]],
  ])('are %s: %j', (_, change, [numSlots, numSnapshots]) => {
    expect(stateSlots({ ...budget, ...change })).toEqual({ numSlots, numSnapshots });
  });

  it('are refused where the memory holds not those of one request', () => {
    expect(() => stateSlots({ ...budget, availableBytes: 3 * MIB })).toThrow(
      'The states of 1 sequence take 1.0 MiB, but 0.3 of the 3.0 MiB of memory available hold 0. Give it more memory.',
    );
    expect(() => stateSlots({ ...budget, availableBytes: 10 * MIB, maxBeamWidth: 4 })).toThrow(
      'The states of 4 sequences take 4.0 MiB, but 0.3 of the 10.0 MiB of memory available hold 3.',
    );
  });
});
