import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { simulate } from '../../../../engine/simulation/simulate.js';
import type { SimulationInput, SimulationRequest } from '../../../../engine/simulation/simulation-input.js';
import { CHUNKING_POLICIES } from '../../../../scheduler/tokens/types.js';
import { draws } from '../../../support/scale.js';
import { Ambiguous } from './naive-pool.js';
import { oracle } from './oracle.js';

const TOKENS_PER_BLOCK = 4;
const NUM_BLOCKS = { min: 9, max: 24 };

type Policy = SimulationInput['policy'];
type Asked = Omit<SimulationRequest, 'id' | 'promptLength' | 'tokens'> & { promptLength: number };

const optional = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined });

/** Requests that fit alone into the smallest pool and the smallest iteration, and seldom together. */
const asked: fc.Arbitrary<Asked> = fc.record({
  arrivalIteration: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 15 })),
  promptLength: fc.integer({ min: 1, max: 18 }),
  maxNewTokens: fc.integer({ min: 1, max: 14 }),
  priority: fc.constantFrom(0.5, 0.5, 0.5, 0.2, 0.9),
  draftLength: fc.constantFrom(0, 0, 0, 1, 5),
  beamWidth: fc.constantFrom(1, 1, 1, 1, 2, 3),
});

/** Some beams of long requests are more than the pool can hold. */
function fits({ promptLength, maxNewTokens, beamWidth = 1 }: Asked, numBlocks: number): boolean {
  const shared = Math.floor(promptLength / TOKENS_PER_BLOCK);
  const all = Math.ceil((promptLength + maxNewTokens) / TOKENS_PER_BLOCK);
  return shared + (all - shared) * beamWidth <= numBlocks;
}

function inputs(policy: Policy): fc.Arbitrary<Omit<SimulationInput, 'requests'> & { requests: Asked[] }> {
  return fc
    .record({
      numBlocks: fc.integer(NUM_BLOCKS),
      maxNumRequests: fc.integer({ min: 1, max: 8 }),
      maxBatchSize: optional(fc.integer({ min: 1, max: 8 })),
      maxNumTokens: optional(fc.integer({ min: 24, max: 50 })),
      chunk: optional(
        fc.record({
          unit: fc.integer({ min: 1, max: 6 }),
          policy: fc.constantFrom(...CHUNKING_POLICIES),
          maxContextLength: optional(fc.integer({ min: 6, max: 20 })),
        }),
      ),
      requests: fc.array(asked, { minLength: 1, maxLength: 10 }),
    })
    .map(({ requests, ...input }) => ({
      policy,
      tokensPerBlock: TOKENS_PER_BLOCK,
      ...input,
      requests: requests.map((request) =>
        fits(request, input.numBlocks) ? request : { ...request, beamWidth: 1 },
      ),
    }));
}

const withIds = (requests: readonly Asked[]) => requests.map((request, id) => ({ id, ...request }));

/**
 * Prompts that begin alike: each is a path of blocks, and two different blocks differ in their first token, so that
 * there is never a choice between two blocks that begin alike.
 */
const paths = fc.array(fc.array(fc.constantFrom(0, 0, 0, 1, 2), { minLength: 5, maxLength: 5 }), {
  minLength: 10,
  maxLength: 10,
});

function withTokens(requests: readonly Asked[], path: readonly number[][]): SimulationRequest[] {
  return requests.map(({ promptLength, ...request }, id) => {
    const tokens = path[id]!.flatMap((block) =>
      Array.from({ length: TOKENS_PER_BLOCK }, (_, place) => 10 * block + place),
    );
    return { id, ...request, tokens: tokens.slice(0, promptLength) };
  });
}

describe('the schedulers and the block manager do what the rules say', () => {
  it.each<Policy>(['MAX_UTILIZATION', 'GUARANTEED_NO_EVICT', 'STATIC_BATCH'])(
    '%s: every field of every iteration',
    (policy) => {
      let pauses = 0;
      const property = fc.property(inputs(policy), (input) => {
        const whole = { ...input, requests: withIds(input.requests) };
        const result = simulate(whole);
        expect(result).toEqual(oracle(whole));
        pauses += result.requests.reduce((sum, request) => sum + request.pauses, 0);
      });
      fc.assert(property, { numRuns: draws(400) });
      if (policy === 'MAX_UTILIZATION') expect(pauses, 'the pools are small enough').toBeGreaterThan(100);
      else expect(pauses).toBe(0);
    },
  );

  it.each<Policy>(['MAX_UTILIZATION', 'GUARANTEED_NO_EVICT', 'STATIC_BATCH'])(
    '%s with block reuse: the same, and which blocks are shared, kept and evicted',
    (policy) => {
      let reused = 0;
      let ambiguous = 0;
      const property = fc.property(inputs(policy), paths, (input, path) => {
        const whole = { ...input, enableBlockReuse: true, requests: withTokens(input.requests, path) };
        const result = simulate(whole);
        reused += result.iterations.at(-1)!.blocks.reused;
        try {
          expect(result).toEqual(oracle(whole));
        } catch (error) {
          if (!(error instanceof Ambiguous)) throw error;
          ambiguous += 1;
        }
      });
      fc.assert(property, { numRuns: draws(300) });
      expect(reused, 'prompts begin alike').toBeGreaterThan(100);
      expect(ambiguous, 'the rules leave little open').toBeLessThan(100);
    },
  );
});
