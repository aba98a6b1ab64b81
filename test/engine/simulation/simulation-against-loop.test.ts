import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { simulate } from '../../../engine/simulation/simulate.js';
import { CHUNKING_POLICIES } from '../../../scheduler/tokens/types.js';
import { i32, LoopHarness, makeRequest } from '../../../tools/support/loop-harness.js';
import { draws } from '../../support/scale.js';

const REQUESTS = { minLength: 2, maxLength: 8 };

const histories = fc.record({
  policy: fc.constantFrom('MAX_UTILIZATION' as const, 'GUARANTEED_NO_EVICT' as const),
  window: fc.constantFrom(undefined, [5, 0], [16, 0], [22, 3], [40, 9]),
  chunkPolicy: fc.constantFrom(undefined, ...CHUNKING_POLICIES),
  requests: fc.array(
    fc.record({
      arrivalIteration: fc.integer({ min: 0, max: 20 }),
      promptLength: fc.integer({ min: 1, max: 24 }),
      maxNewTokens: fc.integer({ min: 1, max: 20 }),
      priority: fc.constantFrom(0.2, 0.5),
    }),
    REQUESTS,
  ),
  /** Blocks that prompts are made of; equal beginnings are shared. null: without reuse. */
  paths: fc.option(
    fc.array(fc.array(fc.constantFrom(0, 0, 0, 1, 2), { minLength: 3, maxLength: 3 }), {
      ...REQUESTS,
      minLength: REQUESTS.maxLength,
    }),
  ),
});

/**
 * Different blocks differ in their first token, so that simulated and drawn tokens are equal in the same
 * places. Prompts end with a block: of several kept blocks that begin like a prompt's last tokens, which one
 * serves depends on how the tokens after them compare, and simulated tokens compare otherwise than drawn
 * ones.
 */
function promptOf(index: number, length: number, paths: readonly number[][] | null): number[] {
  if (paths === null) return Array.from({ length }, (_, position) => (7 * index + position) % 50);
  const blocks = paths[index]!.flatMap((block) =>
    Array.from({ length: 8 }, (_, place) => 10 * block + place),
  );
  return blocks.slice(0, 8 * Math.ceil(length / 8));
}

const OWN_TOKENS = 4;
const VOCAB_SIZE = 28 + REQUESTS.maxLength * OWN_TOKENS;

/**
 * Request `index` draws tokens of its own only, as in the simulation: all others would end it, and may not be drawn
 * before it has all its tokens.
 */
function drawsItsOwn(index: number, maxNewTokens: number) {
  const first = VOCAB_SIZE - (index + 1) * OWN_TOKENS;
  const others = Array.from({ length: VOCAB_SIZE }, (_, token) => token).filter(
    (token) => token < first || token >= first + OWN_TOKENS,
  );
  const stopWords = [...others, ...others.map((_, place) => place + 1)];
  return {
    min_length: i32(maxNewTokens),
    stop_words_list: { shape: [1, 2, others.length], data: Int32Array.from(stopWords) },
  };
}

/** The loop with an executor that computes, on the same pool, fed by the same arrivals. */
describe('the simulation and the generation loop', () => {
  it('agree on what runs, pauses and holds blocks in every iteration', () => {
    let pauses = 0;
    let reused = 0;
    const property = fc.property(histories, ({ policy, chunkPolicy, window, requests, paths }) => {
      const enableBlockReuse = paths !== null;
      const pool = {
        numBlocks: 8,
        tokensPerBlock: 8,
        maxNumTokens: 48,
        // A token drawn in a window can happen to be on another request's path, which simulated tokens never are.
        ...(window && paths === null ? { maxAttentionWindow: window[0]!, sinkTokenLength: window[1]! } : {}),
      };
      const result = simulate({
        ...pool,
        policy,
        maxNumRequests: 8,
        enableBlockReuse,
        ...(chunkPolicy ? { chunk: { unit: 8, policy: chunkPolicy } } : {}),
        requests: requests.map(({ promptLength, ...request }, id) => ({
          id,
          ...request,
          tokens: promptOf(id, promptLength, paths),
        })),
      });
      const chunking = chunkPolicy ? { chunkingPolicy: chunkPolicy } : {};
      const harness = new LoopHarness({
        ...pool,
        fake: { vocabSize: VOCAB_SIZE },
        enableBlockReuse,
        schedulerPolicy: policy,
        ...chunking,
      });
      for (const { iteration, active, scheduled, paused, blocks } of result.iterations) {
        for (const [
          index,
          { arrivalIteration, promptLength, maxNewTokens, priority },
        ] of requests.entries()) {
          if (arrivalIteration !== iteration) continue;
          const prompt = promptOf(index, promptLength, paths);
          const inputs = drawsItsOwn(index, maxNewTokens);
          harness.waiting.push(makeRequest(BigInt(index), prompt, maxNewTokens, inputs, priority));
        }
        harness.stats.length = 0;
        harness.loop.iterate();
        const contexts = scheduled.filter(({ phase }) => phase === 'context');
        const stats = harness.stats[0];
        expect(stats === undefined).toBe(active.length === 0);
        if (stats === undefined) continue;
        expect(stats).toMatchObject({
          activeRequests: active.length,
          contextRequests: contexts.length,
          generationRequests: scheduled.length - contexts.length,
          contextTokens: contexts.reduce((sum, step) => sum + step.contextAfter - step.contextBefore, 0),
          pausedRequests: paused.length,
          reusedBlocks: blocks.reused,
        });
        // The loop counts once contexts that are complete have exchanged blocks for equal ones that were kept before.
        const exchanged = blocks.used - stats.usedBlocks;
        expect(stats.freeBlocks).toBe(blocks.free + exchanged);
        expect(exchanged).toBeGreaterThanOrEqual(0);
        if (!enableBlockReuse || contexts.length === 0) expect(exchanged).toBe(0);
        reused += blocks.reused;
        pauses += paused.length;
      }
      expect(harness.loop.activeRequests).toBe(0);
      expect(harness.errors).toEqual([]);
    });
    fc.assert(property, { numRuns: draws(80) });
    expect(pauses, 'the pool is small enough').toBeGreaterThan(6);
    expect(reused, 'prompts begin alike').toBeGreaterThan(30);
  });
});
