import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { AttentionWindow } from '../../kvcache/attention-window.js';
import { KvCacheManager } from '../../kvcache/kv-cache-manager.js';
import { kvCacheSize } from '../../kvcache/kv-cache-size.js';
import { blocksForNextStep, blocksToCompletion } from '../../scheduler/tokens/block-needs.js';
import { draws } from '../support/scale.js';
import { contextRequest, generationRequest } from '../support/schedulable.js';

describe('the blocks of a window', () => {
  // [window, sinks, tokensPerBlock] -> [sinkBlocks, ringBlocks, cachedTokens]
  it.each([
    [
      [11, 2, 4],
      [1, 3, 13],
    ], // the drawing in attention-window.ts
    [
      [1, 0, 8],
      [0, 1, 1],
    ],
    [
      [64, 0, 32],
      [0, 2, 64],
    ],
    [
      [65, 0, 32],
      [0, 3, 65],
    ],
    [
      [64, 4, 32],
      [1, 2, 92],
    ],
    [
      [1028, 4, 32],
      [1, 32, 1056],
    ],
    [
      [64, 32, 32],
      [1, 1, 64],
    ],
  ])('%j: %j', ([maxAttentionWindow, sinkTokenLength, tokensPerBlock], [sinkBlocks, ringBlocks, cached]) => {
    const window = new AttentionWindow({
      maxAttentionWindow: maxAttentionWindow!,
      sinkTokenLength: sinkTokenLength!,
      tokensPerBlock: tokensPerBlock!,
    });
    expect([window.sinkBlocks, window.ringBlocks, window.cachedTokens]).toEqual([
      sinkBlocks,
      ringBlocks,
      cached,
    ]);
    expect(window.maxBlocks).toBe(Math.ceil(cached! / tokensPerBlock!));
  });

  it('take turns behind those of the sinks', () => {
    const window = new AttentionWindow({ maxAttentionWindow: 11, sinkTokenLength: 2, tokensPerBlock: 4 });
    expect([0, 1, 2, 3, 4, 5, 6, 7].map((block) => window.entryOf(block))).toEqual([0, 1, 2, 3, 1, 2, 3, 1]);
    const plain = new AttentionWindow({ maxAttentionWindow: 6, tokensPerBlock: 4 });
    expect([0, 1, 2, 3, 4].map((block) => plain.entryOf(block))).toEqual([0, 1, 0, 1, 0]);
  });

  it('hold at any time all tokens that the next one attends to, each in a slot of its own', () => {
    const windows = fc
      .record({
        tokensPerBlock: fc.integer({ min: 1, max: 9 }),
        recent: fc.integer({ min: 1, max: 30 }),
        sinks: fc.integer({ min: 0, max: 12 }),
      })
      .map(({ recent, sinks, tokensPerBlock }) => {
        const window = new AttentionWindow({
          maxAttentionWindow: recent + sinks,
          sinkTokenLength: sinks,
          tokensPerBlock,
        });
        return { window, recent, sinks, tokensPerBlock };
      });
    const property = fc.property(windows, ({ window, recent, sinks, tokensPerBlock }) => {
      const holds = new Map<number, number>();
      for (let position = 0; position < 120; position++) {
        const entry = window.entryOf(Math.floor(position / tokensPerBlock));
        expect(entry).toBeLessThan(window.maxBlocks);
        holds.set(entry * tokensPerBlock + (position % tokensPerBlock), position);
        const held = new Set(holds.values());
        for (let t = 0; t <= position; t++) {
          if (t < sinks || t > position - recent) expect(held.has(t)).toBe(true);
        }
      }
    });
    fc.assert(property, { numRuns: 15 });
  });

  it.each([
    [{ maxAttentionWindow: 0 }, 'maxAttentionWindow is 0; a whole number of at least 1 is expected.'],
    [{ maxAttentionWindow: 2.5 }, 'maxAttentionWindow is 2.5; a whole number of at least 1 is expected.'],
    [
      { maxAttentionWindow: 8, sinkTokenLength: 8 },
      'sinkTokenLength is 8; a whole number from 0 to 7, less than maxAttentionWindow = 8, is expected.',
    ],
    [
      { maxAttentionWindow: 8, sinkTokenLength: -1 },
      'sinkTokenLength is -1; a whole number from 0 to 7, less than maxAttentionWindow = 8, is expected.',
    ],
    [{ sinkTokenLength: 3 }, 'sinkTokenLength is 3, but there is no maxAttentionWindow for sinks to be in.'],
    [
      { maxAttentionWindow: 25 },
      'The KV cache has 3 blocks of 8 tokens, but one sequence of maxSeqLen = 100 in a window of ' +
        'maxAttentionWindow = 25 needs 4. Give it more memory or lower maxAttentionWindow.',
    ],
  ])('refuse %j', (options, message) => {
    const make = () => new KvCacheManager({ numBlocks: 3, tokensPerBlock: 8, maxSeqLen: 100, ...options });
    expect(make).toThrow(new RangeError(message));
  });
});

describe('a KV cache with a window', () => {
  const cache = (more: object = {}) =>
    new KvCacheManager({ numBlocks: 6, tokensPerBlock: 8, maxSeqLen: 1000, maxAttentionWindow: 20, ...more });

  it('holds sequences far longer than its pool, in the blocks of the window', () => {
    const kv = cache();
    expect(kv.maxBlocksPerSequence).toBe(3);
    expect(kv.capacity().maxAttentionWindow).toBe(20);
    expect(kv.addSequence(1n, 500)).toBe(true);
    expect([kv.blocksHeld(1n), kv.freeBlocks, kv.sequenceLength(1n)]).toEqual([3, 3, 500]);
    kv.addSequence(2n, 9);
    for (let length = 10; length <= 1000; length++) {
      expect(kv.growSequence(2n, length)).toBe(true);
      expect(kv.blocksHeld(2n)).toBe(Math.min(3, Math.ceil(length / 8)));
      kv.checkIntegrity();
    }
    expect(kv.freeBlocks).toBe(0);
    expect(kv.growSequence(1n, 501)).toBe(true);
    expect(kv.canGrowSequence(1n, 1000)).toBe(true);
    expect(kv.canAddSequence(1)).toBe(false);
    expect([kv.freeSequence(1n), kv.freeSequence(2n)]).toEqual([3, 3]);
    kv.checkIntegrity();
  });

  it('names the slots whose turn it is', () => {
    const kv = cache({ maxAttentionWindow: 20, sinkTokenLength: 5 });
    kv.addSequence(1n, 40);
    const table = new Int32Array(3);
    expect(kv.writeBlockTable(1n, table, 0, 3)).toBe(3);
    expect([...table]).toEqual([0, 1, 2]);
    const slots = new Int32Array(20);
    kv.writeSlots(1n, 22, 35, slots, 0);
    // Positions 22, 23 in entry 2; 24 to 31 in entry 1 again; 32 to 34 in entry 2.
    expect([...slots.subarray(0, 13)]).toEqual([22, 23, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18]);
  });

  it('gives back the blocks of a draft only as far as the window has not been filled', () => {
    const kv = cache();
    kv.addSequence(1n, 8);
    kv.growSequence(1n, 30);
    expect(kv.blocksHeld(1n)).toBe(3);
    kv.trimSequence(1n, 15);
    expect(kv.blocksHeld(1n)).toBe(2);
    kv.growSequence(1n, 30);
    kv.trimSequence(1n, 25);
    expect(kv.blocksHeld(1n)).toBe(3);
    kv.checkIntegrity();
  });

  it('takes from the pool what the schedulers count, step by step', () => {
    const sequences = fc.record({
      maxAttentionWindow: fc.integer({ min: 4, max: 40 }),
      sinkTokenLength: fc.integer({ min: 0, max: 3 }),
      promptLength: fc.integer({ min: 1, max: 60 }),
      maxNewTokens: fc.integer({ min: 1, max: 60 }),
    });
    const property = fc.property(sequences, ({ promptLength, maxNewTokens, ...options }) => {
      const kv = cache({ ...options, numBlocks: 20 });
      const capacity = kv.capacity();
      const context = contextRequest(1n, promptLength, maxNewTokens);
      expect(kv.addSequence(1n, promptLength)).toBe(true);
      let held = kv.blocksHeld(1n);
      expect(held).toBe(blocksForNextStep(context, capacity));
      for (let generatedLength = 1; generatedLength < maxNewTokens; generatedLength++) {
        const generation = generationRequest(1n, promptLength, maxNewTokens, generatedLength);
        kv.growSequence(1n, promptLength + generatedLength);
        expect(kv.blocksHeld(1n) - held).toBe(blocksForNextStep(generation, capacity));
        held = kv.blocksHeld(1n);
      }
      expect(held).toBeLessThanOrEqual(blocksToCompletion(context, capacity));
      kv.checkIntegrity();
    });
    fc.assert(property, { numRuns: draws(80) });
  });

  it('lets a sequence share only where it ends before its blocks are written over', () => {
    const kv = cache({ enableBlockReuse: true });
    expect([kv.canShare(24), kv.canShare(25)]).toEqual([true, false]);
    const tokens = Int32Array.from({ length: 100 }, (_, i) => i);
    const shared = { tokens, salt: 0n };
    kv.addSequence(1n, 20, shared);
    kv.store(1n, tokens, 20);
    kv.freeSequence(1n);
    kv.addSequence(2n, 24, shared);
    expect(kv.reuseOf(2n)).toEqual({ reusedTokens: 16, reusedBlocks: 2, missedBlocks: 0 });
    expect(() => kv.growSequence(2n, 25)).toThrow(
      'Request 2 shares its blocks, but 25 tokens are more than the 24 that fit into its window',
    );
    expect(() => kv.addSequence(3n, 25, shared)).toThrow('Request 3 shares its blocks, but 25 tokens');
    expect(kv.addSequence(3n, 25)).toBe(true);
    expect(kv.reuseOf(3n)).toEqual({ reusedTokens: 0, reusedBlocks: 0, missedBlocks: 0 });
    kv.checkIntegrity();
    expect(new KvCacheManager({ numBlocks: 3, maxSeqLen: 40 }).canShare(10)).toBe(false);
  });
});

describe('the size of a pool', () => {
  const sizes = {
    availableBytes: 1000,
    freeMemoryFraction: 1,
    bytesPerBlock: 10,
    tokensPerBlock: 8,
    maxNumSequences: 4,
    maxSeqLen: 100_000,
  };
  const window = new AttentionWindow({ maxAttentionWindow: 100, tokensPerBlock: 8 });

  it('is counted in windows', () => {
    expect(kvCacheSize({ ...sizes, window })).toMatchObject({
      numBlocks: 4 * 13,
      limitedBy: 'maxNumSequences x maxSeqLen',
    });
    expect(() => kvCacheSize(sizes)).toThrow(/needs 12500 KV cache blocks/);
    expect(() => kvCacheSize({ ...sizes, window, maxTokens: 96 })).toThrow(
      /maxSeqLen = 100000 tokens in a window of 100 needs 13 KV cache blocks .* allows 12\. Raise maxTokens or lower maxAttentionWindow\./,
    );
  });
});
