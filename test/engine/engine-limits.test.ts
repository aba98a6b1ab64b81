import { describe, expect, it } from 'vitest';
import { kvBlocks, resolveLimits } from '../../engine/engine-limits.js';

const ENGINE = { maxInputLen: 1000, maxSeqLen: 1024 };

describe('resolveLimits', () => {
  it('takes the engine as it is where nothing is asked for', () => {
    expect(resolveLimits({}, ENGINE)).toEqual({
      maxInputLen: 1000,
      maxSeqLen: 1024,
      maxNumSequences: 64,
      maxTopLogProbs: 20,
      tokensPerBlock: 32,
      microBatch: { maxBatchSize: 64, maxNumTokens: 2048 },
    });
  });

  it('lets one iteration take the longest prompt where contexts are not chunked', () => {
    const long = { maxInputLen: 8192, maxSeqLen: 8192 };
    expect(resolveLimits({}, long).microBatch.maxNumTokens).toBe(8192);
    expect(resolveLimits({ enableChunkedContext: true, tokensPerBlock: 16 }, long).microBatch).toEqual({
      maxBatchSize: 64,
      maxNumTokens: 2048,
      chunking: { policy: 'FIRST_COME_FIRST_SERVED', unit: 16 },
    });
  });

  it('lowers limits but never raises them', () => {
    expect(resolveLimits({ maxSeqLen: 100 }, ENGINE)).toMatchObject({ maxSeqLen: 100, maxInputLen: 100 });
    expect(() => resolveLimits({ maxSeqLen: 2000 }, ENGINE)).toThrow(/maxSeqLen is 2000; .* at most 1024/);
    expect(resolveLimits({ maxNumSequences: 4, maxBatchSize: 9 }, ENGINE).microBatch.maxBatchSize).toBe(4);
  });
});

describe('kvBlocks', () => {
  const limits = resolveLimits({ maxNumSequences: 4 }, ENGINE);
  const budget = { limits, bytesPerToken: 100, availableBytes: 1e9 };

  it('is the smallest of what the sequences fill, maxTokens, and the fraction of memory', () => {
    expect(kvBlocks({}, budget)).toBe(4 * 32);
    expect(kvBlocks({ kvCacheConfig: { maxTokens: 2000 } }, budget)).toBe(63);
    const availableBytes = 100 * 32 * 80;
    expect(kvBlocks({}, { ...budget, availableBytes })).toBe(72);
    expect(kvBlocks({ kvCacheConfig: { freeGpuMemoryFraction: 0.5 } }, { ...budget, availableBytes })).toBe(
      40,
    );
  });

  it('says with the numbers that not even one sequence fits', () => {
    expect(() => kvBlocks({ kvCacheConfig: { maxTokens: 500 } }, budget)).toThrow(
      /16 blocks of 32 tokens \(kvCacheConfig.maxTokens = 500\).*maxSeqLen = 1024 needs 32/,
    );
    expect(() => kvBlocks({}, { ...budget, availableBytes: 1000 })).toThrow(/0.9 of 1000 available bytes/);
  });
});
