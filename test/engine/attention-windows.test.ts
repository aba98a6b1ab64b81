import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { InferenceRequest } from '../../callbacks/types.js';
import { type HarnessOptions, LoopHarness, makeRequest, runAlone } from '../../tools/support/loop-harness.js';
import { draws } from '../support/scale.js';

/** Prompts of which every second begins as another one. */
function prompt(index: number, length: number): number[] {
  return Array.from({ length }, (_, position) => (position + (index % 2) * 31) % 97);
}

const WINDOW = { tokensPerBlock: 8, maxSeqLen: 400, maxAttentionWindow: 30, sinkTokenLength: 5 };

function run(requests: InferenceRequest[], options: HarnessOptions): LoopHarness {
  const harness = new LoopHarness(options).run(...requests);
  expect(harness.errors).toEqual([]);
  return harness;
}

describe('the loop with an attention window', () => {
  it('generates far longer than the pool, in the blocks of the window', () => {
    const request = makeRequest(1n, prompt(0, 20), 380);
    // 5 sinks and 25 more tokens are 1 and 4 blocks: exactly the pool, which has room for 40 of 400 tokens.
    const harness = run([request], { ...WINDOW, numBlocks: 5 });
    const { tokens, error } = harness.resultOf(1n);
    expect([tokens.length, error]).toEqual([380, '']);
    expect(Math.max(...harness.stats.map(({ usedBlocks }) => usedBlocks))).toBe(5);
    expect(tokens).toEqual(runAlone(request, { ...WINDOW, numBlocks: 64 }).tokens);
    const { maxAttentionWindow: _, sinkTokenLength: __, ...whole } = WINDOW;
    expect(tokens).not.toEqual(runAlone(request, whole).tokens);
  });

  it('refuses only what the pool cannot hold in its window', () => {
    const window = { tokensPerBlock: 8, numBlocks: 8, maxSeqLen: 400, maxAttentionWindow: 64 };
    const harness = run([makeRequest(1n, prompt(0, 60), 300)], { ...window, maxInputLen: 100 });
    expect(harness.resultOf(1n).error).toBe('');
    expect(() => new LoopHarness({ ...window, maxAttentionWindow: 65 })).toThrow(/in a window of .* needs 9/);
  });

  it.each(['GUARANTEED_NO_EVICT', 'MAX_UTILIZATION'] as const)(
    '%s: any crowd answers as each alone, with and without reuse, chunked or not',
    (schedulerPolicy) => {
      let pauses = 0;
      let reused = 0;
      const lengths = fc.record({
        promptLength: fc.integer({ min: 1, max: 60 }),
        maxNewTokens: fc.integer({ min: 1, max: 60 }),
      });
      const crowds = fc.record({
        maxAttentionWindow: fc.integer({ min: 6, max: 70 }),
        sinkTokenLength: fc.integer({ min: 0, max: 5 }),
        enableBlockReuse: fc.boolean(),
        chunked: fc.boolean(),
        requests: fc.array(lengths, { minLength: 2, maxLength: 8 }),
      });
      const property = fc.property(crowds, ({ chunked, requests, ...window }) => {
        const options: HarnessOptions = {
          schedulerPolicy,
          tokensPerBlock: 8,
          numBlocks: 18,
          maxSeqLen: 130,
          maxNumTokens: chunked ? 32 : 130,
          ...(chunked ? { chunkingPolicy: 'FIRST_COME_FIRST_SERVED' } : {}),
          ...window,
        };
        const crowd = requests.map(({ promptLength, maxNewTokens }, index) =>
          makeRequest(BigInt(index), prompt(index, promptLength), maxNewTokens),
        );
        const harness = run(crowd, options);
        for (const request of crowd) {
          const alone = runAlone(request, { ...options, enableBlockReuse: false, numBlocks: 64 });
          expect(harness.resultOf(request.requestId).tokens).toEqual(alone.tokens);
          expect(harness.resultOf(request.requestId).error).toBe('');
        }
        pauses += harness.stats.at(-1)!.totalPauses;
        reused += harness.stats.at(-1)!.reusedBlocks;
        expect(harness.kvCache.freeBlocks).toBe(18);
      });
      fc.assert(property, { numRuns: draws(25) });
      expect(reused).toBeGreaterThan(0);
      if (schedulerPolicy === 'MAX_UTILIZATION') expect(pauses).toBeGreaterThan(draws(4));
    },
  );

  it('counts reuse only of requests that end before their blocks are written over', () => {
    const options = {
      ...WINDOW,
      numBlocks: 20,
      enableBlockReuse: true,
      schedulerPolicy: 'MAX_UTILIZATION' as const,
    };
    const harness = new LoopHarness(options);
    const send = (requestId: bigint, maxNewTokens: number) => {
      harness.run(makeRequest(requestId, prompt(0, 20), maxNewTokens));
      const { reusedBlocks, missedBlocks } = harness.stats.at(-1)!;
      return [reusedBlocks, missedBlocks];
    };
    expect(send(1n, 20)).toEqual([0, 2]); // ends at 40 tokens, which 5 blocks hold
    expect(send(2n, 20)).toEqual([2, 2]);
    expect(send(3n, 21)).toEqual([2, 2]); // one more would be written over
    expect(harness.stats.at(-1)!.queriedTokens).toBe(0);
  });

  it('V1 pads in the window too', () => {
    const requests = Array.from({ length: 5 }, (_, i) =>
      makeRequest(BigInt(i), prompt(i, 3 + 14 * i), 12 * (5 - i)),
    );
    const options = { ...WINDOW, numBlocks: 40, maxNumTokens: 400, modelType: 'V1' as const };
    const harness = run(requests, options);
    expect(harness.stats.reduce((sum, stats) => sum + stats.emptyGenerationSlots, 0)).toBeGreaterThan(20);
    for (const request of requests) {
      const alone = runAlone(request, { ...WINDOW, maxNumTokens: 400 });
      expect(harness.resultOf(request.requestId).tokens).toEqual(alone.tokens);
    }
  });
});
