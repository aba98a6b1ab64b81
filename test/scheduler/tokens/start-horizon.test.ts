import { describe, expect, it } from 'vitest';
import { blocksWithin } from '../../../scheduler/tokens/block-needs.js';
import { scheduleCapacity } from '../../../scheduler/tokens/capacity-scheduler.js';
import type { SchedulableRequest } from '../../../scheduler/tokens/types.js';
import { bool, LoopHarness, makeRequest, runAlone } from '../../../tools/support/loop-harness.js';
import {
  contextRequest as context,
  generationRequest as generation,
  ids,
} from '../../support/schedulable.js';

const KV = { tokensPerBlock: 8, maxAttentionWindow: Number.POSITIVE_INFINITY };

describe('blocksWithin', () => {
  it.each([
    { what: 'a context and 8 tokens', request: context(1n, 8, 20), tokens: 8, blocks: 2 },
    { what: 'a context and 9 tokens', request: context(1n, 8, 20), tokens: 9, blocks: 3 },
    { what: 'no more than maxNewTokens', request: context(1n, 8, 4), tokens: 100, blocks: 2 },
    // 8 + 2 - 1 = 9 tokens in the cache; 7 more fill the second block.
    { what: 'growth', request: generation(1n, 8, 40, 2, { blocksHeld: 2 }), tokens: 7, blocks: 0 },
    { what: 'growth', request: generation(1n, 8, 40, 2, { blocksHeld: 2 }), tokens: 8, blocks: 1 },
    { what: 'the rest', request: generation(1n, 8, 8, 2, { blocksHeld: 2 }), tokens: 50, blocks: 0 },
  ])('counts $what: $blocks blocks for $tokens tokens', ({ request, tokens, blocks }) => {
    expect(blocksWithin(request, tokens, KV)).toBe(blocks);
  });
});

describe('startHorizon', () => {
  const plan = (requests: SchedulableRequest[], freeBlocks: number, startHorizon: number) => {
    const { scheduled, paused } = scheduleCapacity('MAX_UTILIZATION', requests, { ...KV, freeBlocks }, 8, {
      startHorizon,
    });
    return { scheduled: ids(scheduled), paused: ids(paused) };
  };
  /** 16 tokens in 2 full blocks; every 8 tokens take another one. */
  const running = (id: bigint) => generation(id, 16, 64, 1, { blocksHeld: 2 });

  it('starts a request only where the pool lasts for all that run in front of it', () => {
    const requests = [running(1n), context(2n, 8, 64)];
    // In 16 tokens the first takes 2 blocks and the second 1 + 2.
    expect(plan(requests, 5, 16)).toEqual({ scheduled: [1n, 2n], paused: [] });
    expect(plan(requests, 4, 16)).toEqual({ scheduled: [1n], paused: [] });
    expect(plan(requests, 4, 0)).toEqual({ scheduled: [1n, 2n], paused: [] });
  });

  it('lets no later newcomer overtake, and everything that has started run', () => {
    const small = generation(4n, 8, 4, 1, { blocksHeld: 1 });
    const requests = [running(1n), context(2n, 32, 8), context(3n, 1, 1), small];
    // The last holds 1 block, which counts as free. The others take 2, 4 + 1 and 1 within 16 tokens.
    expect(plan(requests, 5, 16)).toEqual({ scheduled: [1n, 4n], paused: [] });
    expect(plan(requests, 6, 16)).toEqual({ scheduled: [1n, 2n, 4n], paused: [] });
    expect(plan(requests, 7, 16)).toEqual({ scheduled: [1n, 2n, 3n, 4n], paused: [] });
  });

  it('starts the first of the list, however long it may get', () => {
    expect(plan([context(1n, 8, 800), context(2n, 8, 8)], 4, 64)).toEqual({ scheduled: [1n], paused: [] });
  });

  it('counts what those behind hold, who would give way: a priority still comes first', () => {
    const urgent = context(1n, 16, 8);
    // It needs 3 blocks within 16 tokens: 1 is free and 2 are held after it.
    expect(plan([running(9n), urgent, running(2n)], 3, 16)).toEqual({ scheduled: [9n, 1n], paused: [2n] });
    expect(plan([urgent, running(2n)], 0, 16)).toEqual({ scheduled: [1n], paused: [2n] });
  });

  it('sets aside what a request will take that the reuse delay holds back', () => {
    const [writer, delayed] = [
      context(1n, 16, 8, { firstMissingBlock: 7 }),
      context(2n, 16, 8, { firstMissingBlock: 7 }),
    ];
    const other = context(3n, 8, 8);
    // 3 + 3 + 2 blocks within 16 tokens.
    expect(plan([writer, delayed, other], 8, 16)).toEqual({ scheduled: [1n, 3n], paused: [] });
    expect(plan([writer, delayed, other], 7, 16)).toEqual({ scheduled: [1n], paused: [] });
    expect(plan([writer, delayed, other], 7, 0)).toEqual({ scheduled: [1n, 3n], paused: [] });
  });
});

/** Sixteen requests on a pool for two; how often they were paused, and how many context tokens were computed for it. */
function overload(startHorizon?: number) {
  const requests = Array.from({ length: 16 }, (_, i) =>
    makeRequest(BigInt(i), [i, 2, 3, 4, 5, 6], 40, { return_log_probs: bool(true) }),
  );
  const harness = new LoopHarness({
    schedulerPolicy: 'MAX_UTILIZATION',
    numBlocks: 16,
    maxNumSequences: 16,
    ...(startHorizon === undefined ? {} : { startHorizon }),
  }).run(...requests);
  for (const request of requests) {
    const { numResponses: _, ...alone } = runAlone(request);
    expect(harness.resultOf(request.requestId)).toMatchObject(alone);
  }
  const { totalPauses, totalContextTokens } = harness.stats.at(-1)!;
  return { totalPauses, totalContextTokens };
}

describe('thrashing under overload', () => {
  it('is what the horizon prevents; the answers stay the same', () => {
    const without = overload();
    const halfway = overload(20);
    const whole = overload(40);
    expect(without.totalPauses).toBeGreaterThan(20);
    expect(halfway.totalPauses).toBeLessThan(without.totalPauses);
    expect(halfway.totalContextTokens).toBeLessThan(without.totalContextTokens);
    expect(whole).toEqual({ totalPauses: 0, totalContextTokens: 16 * 6 });
  });
});
