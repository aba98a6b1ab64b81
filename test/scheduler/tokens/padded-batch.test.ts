import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { schedulePaddedBatch } from '../../../scheduler/tokens/padded-batch.js';
import { contextRequest, generationRequest, ids } from '../../support/schedulable.js';

const requestsOf = (lengths: readonly number[]) =>
  lengths.map((length, index) => contextRequest(BigInt(index), length, 1));

describe('schedulePaddedBatch', () => {
  it.each([
    { lengths: [5, 8, 3, 2], maxNumTokens: 24, maxBatchSize: 8, count: 3 },
    { lengths: [5, 8, 3, 2], maxNumTokens: 32, maxBatchSize: 8, count: 4 },
    { lengths: [5, 8, 3, 2], maxNumTokens: 32, maxBatchSize: 2, count: 2 },
    { lengths: [2, 2, 30, 2], maxNumTokens: 32, maxBatchSize: 8, count: 2 },
    { lengths: [32, 1], maxNumTokens: 32, maxBatchSize: 8, count: 1 },
    { lengths: [], maxNumTokens: 32, maxBatchSize: 8, count: 0 },
  ])('takes $count of prompts $lengths into $maxNumTokens tokens', ({ lengths, count, ...limits }) => {
    const requests = requestsOf(lengths);
    const chunks = schedulePaddedBatch(requests, limits);
    expect(ids(chunks.map(({ request }) => request))).toEqual(ids(requests.slice(0, count)));
    expect(chunks.map(({ contextTokens }) => contextTokens)).toEqual(lengths.slice(0, count));
  });

  it.each([
    { maxSequences: 5, maxNumTokens: 64, count: 2 },
    { maxSequences: 6, maxNumTokens: 64, count: 3 },
    { maxSequences: 64, maxNumTokens: 5, count: 2 },
  ])(
    'takes $count of 3 requests with 2 beams each into $maxSequences sequences and $maxNumTokens tokens',
    ({ count, ...limits }) => {
      const requests = [0n, 1n, 2n].map((id) => contextRequest(id, 1, 1, { beamWidth: 2 }));
      const chunks = schedulePaddedBatch(requests, { maxBatchSize: 8, ...limits });
      expect(chunks).toHaveLength(count);
    },
  );

  it('runs a batch that generates on, all of it, and starts nothing', () => {
    const generating = [generationRequest(1n, 9, 4, 1), generationRequest(2n, 3, 4, 1)];
    const limits = { maxBatchSize: 8, maxNumTokens: 10 };
    const chunks = schedulePaddedBatch([...generating, contextRequest(3n, 1, 1)], limits);
    expect(chunks).toEqual(generating.map((request) => ({ request, contextTokens: 0 })));
  });

  it('takes the longest beginning of the list whose padded size fits, and never nothing', () => {
    const lengths = fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 12 });
    const limits = fc.record({
      maxBatchSize: fc.integer({ min: 1, max: 8 }),
      maxNumTokens: fc.integer({ min: 40, max: 200 }),
    });
    fc.assert(
      fc.property(lengths, limits, (prompts, { maxBatchSize, maxNumTokens }) => {
        const { length } = schedulePaddedBatch(requestsOf(prompts), { maxBatchSize, maxNumTokens });
        const fits = (count: number) =>
          count <= maxBatchSize && count * Math.max(...prompts.slice(0, count)) <= maxNumTokens;
        expect(length).toBeGreaterThan(0);
        expect(fits(length)).toBe(true);
        if (length < prompts.length) expect(fits(length + 1)).toBe(false);
      }),
    );
  });
});
