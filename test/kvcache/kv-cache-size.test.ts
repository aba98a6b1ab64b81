import { describe, expect, it } from 'vitest';
import { kvBytesPerBlock, kvCacheSize } from '../../kvcache/kv-cache-size.js';

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
  it('counts keys and values of all layers', () => {
    const shape = { numLayers: 30, numKvHeads: 3, headDim: 64 };
    expect(kvBytesPerBlock(shape, 32, 'bf16')).toBe(2 * 30 * 3 * 64 * 32 * 2);
    expect(kvBytesPerBlock(shape, 32, 'f32')).toBe(2 * 30 * 3 * 64 * 32 * 4);
    expect(kvBytesPerBlock(shape, 32, 'int8')).toBe(2 * 30 * 3 * (64 + 4) * 32);
    // Keys come in pairs of dimensions.
    expect(kvBytesPerBlock({ ...shape, headDim: 9 }, 8, 'int8')).toBe(30 * 3 * (10 + 9 + 8) * 8);
  });
});

describe('kvCacheSize', () => {
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
    [{ bytesPerBlock: 0.5 }, 'bytesPerBlock is 0.5; a whole number of at least 1 is expected.'],
  ])('refuses %j', (change, sentence) => {
    expect(() => kvCacheSize({ ...options, ...change })).toThrow(sentence);
  });
});
