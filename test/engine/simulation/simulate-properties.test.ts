import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type SimulationResult, simulate } from '../../../engine/simulation/simulate.js';
import type { SimulationInput } from '../../../engine/simulation/simulation-input.js';
import { CHUNKING_POLICIES } from '../../../scheduler/tokens/types.js';
import { draws } from '../../support/scale.js';

const policies = ['MAX_UTILIZATION', 'GUARANTEED_NO_EVICT', 'STATIC_BATCH'] as const;

/** Pools of 8 to 14 blocks of 3 tokens; requests that always fit alone, and seldom together. */
const inputs: fc.Arbitrary<SimulationInput> = fc
  .record({
    policy: fc.constantFrom(...policies),
    numBlocks: fc.integer({ min: 8, max: 14 }),
    maxNumRequests: fc.integer({ min: 1, max: 6 }),
    maxBatchSize: fc.integer({ min: 1, max: 6 }),
    chunk: fc.option(
      fc.record({
        unit: fc.integer({ min: 1, max: 5 }),
        policy: fc.constantFrom(...CHUNKING_POLICIES),
      }),
      { nil: undefined },
    ),
    maxNumTokens: fc.integer({ min: 14, max: 40 }),
    window: fc.option(
      fc.record({
        maxAttentionWindow: fc.integer({ min: 4, max: 26 }),
        sinkTokenLength: fc.integer({ min: 0, max: 3 }),
      }),
      { nil: undefined },
    ),
    requests: fc.array(
      fc.record({
        arrivalIteration: fc.integer({ min: 0, max: 12 }),
        promptLength: fc.integer({ min: 1, max: 12 }),
        maxNewTokens: fc.integer({ min: 1, max: 12 }),
        priority: fc.constantFrom(0.1, 0.5, 0.8),
        draftLength: fc.constantFrom(0, 0, 2),
      }),
      { minLength: 1, maxLength: 9 },
    ),
  })
  .map(({ chunk, window, requests, ...rest }) => ({
    ...rest,
    ...window,
    tokensPerBlock: 3,
    ...(chunk ? { chunk } : {}),
    requests: requests.map((request, index) => ({ id: `r${index}`, ...request })),
  }));

function check(property: (input: SimulationInput, result: SimulationResult) => void): void {
  fc.assert(
    fc.property(inputs, (input) => property(input, simulate(input))),
    { numRuns: draws(170) },
  );
}

describe('any simulation', () => {
  it('brings every request to its last token, each once, and empties the pool', () => {
    check(({ requests: asked, numBlocks }, { iterations, requests }) => {
      for (const [index, { id, firstIteration, lastIteration }] of requests.entries()) {
        const { arrivalIteration, maxNewTokens } = asked[index]!;
        expect(id).toBe(asked[index]!.id);
        expect(firstIteration).toBeGreaterThanOrEqual(arrivalIteration);
        const last = iterations[lastIteration]!.scheduled.find((step) => step.id === id);
        expect(last?.generated).toBe(maxNewTokens);
        const present = iterations
          .filter(({ active }) => active.includes(id))
          .map(({ iteration }) => iteration);
        expect([present[0], present.at(-1)]).toEqual([arrivalIteration, lastIteration]);
        expect(present).toHaveLength(lastIteration - arrivalIteration + 1);
      }
      for (const { blocks } of iterations) expect(blocks.free + blocks.used).toBe(numBlocks);
    });
  });

  it('pauses under MAX_UTILIZATION only, and counts it', () => {
    let pauses = 0;
    check(({ policy }, { iterations, requests }) => {
      const paused = iterations.flatMap((iteration) => iteration.paused);
      for (const { id, pauses: counted } of requests) {
        expect(paused.filter((other) => other === id)).toHaveLength(counted);
      }
      if (policy !== 'MAX_UTILIZATION') expect(paused).toEqual([]);
      pauses += paused.length;
    });
    expect(pauses, 'the pools are small enough').toBeGreaterThan(15);
  });

  /**
   * Blocks from the rules alone: the whole prompt with the first chunk, past + 1 + draft while generating, those of
   * the draft given back, everything with a pause or the end; in a window never more than its blocks.
   */
  it('uses as many blocks as the rules say, iteration by iteration', () => {
    check((input, { iterations, requests }) => {
      const size = input.tokensPerBlock;
      const { maxAttentionWindow = Infinity, sinkTokenLength = 0 } = input;
      // Blocks of the sinks, and of the rest of the window.
      const most =
        Math.ceil(sinkTokenLength / size) + Math.ceil((maxAttentionWindow - sinkTokenLength) / size);
      const blocksOf = (tokens: number) => Math.min(most, Math.ceil(tokens / size));
      const held = new Map(requests.map(({ id }) => [id, 0]));
      const known = new Map(requests.map(({ id }) => [id, 0]));
      for (const { iteration, scheduled, paused, blocks } of iterations) {
        for (const id of paused) held.set(id, 0);
        const after = new Map<string | number, number>();
        for (const { id, phase, contextBefore, generated } of scheduled) {
          const { promptLength, maxNewTokens, draftLength } = input.requests.find(
            (asked) => asked.id === id,
          )!;
          const past = promptLength! + generated - 2;
          const draft = Math.min(draftLength!, maxNewTokens - generated);
          if (phase === 'generation') {
            held.set(id, blocksOf(past + 1 + draft));
            after.set(id, blocksOf(past + 1));
          } else if (contextBefore === 0) {
            // Without chunks a resumed prompt is at most what an iteration takes, with its draft.
            const resumed = promptLength! + known.get(id)!;
            const longest = input.chunk
              ? Infinity
              : Math.max(promptLength!, input.maxNumTokens! - draftLength!);
            if (resumed > longest) return;
            held.set(id, blocksOf(resumed));
          }
          known.set(id, generated);
        }
        const used = [...held.values()].reduce((sum, count) => sum + count, 0);
        expect(`${iteration}: ${blocks.used}`).toBe(`${iteration}: ${used}`);
        for (const [id, count] of after) held.set(id, count);
        for (const { id, lastIteration } of requests) if (lastIteration === iteration) held.set(id, 0);
      }
    });
  });

  it('is the same when asked again, and leaves its input alone', () => {
    check((input, result) => {
      const before = JSON.stringify(input);
      expect(simulate(input)).toEqual(result);
      expect(JSON.stringify(input)).toBe(before);
    });
  });

  it('with prompts that share nothing, reuse changes nothing but what resumes find', () => {
    check((input, plain) => {
      const reusing = simulate({ ...input, enableBlockReuse: true });
      const pauses = plain.iterations.some(({ paused }) => paused.length > 0);
      if (!pauses) expect(reusing).toEqual(plain);
    });
  });

  it('with prompts that begin alike, counts every reused block once and computes every last prompt token', () => {
    let reused = 0;
    let resumed = 0;
    const token = fc.constantFrom(1, 1, 1, 2);
    const prompts = fc.array(fc.array(token, { minLength: 12, maxLength: 12 }), {
      minLength: 9,
      maxLength: 9,
    });
    const property = fc.property(inputs, prompts, (input, tokens) => {
      const requests = input.requests.map(({ promptLength, ...request }, index) => ({
        ...request,
        tokens: tokens[index]!.slice(0, promptLength),
      }));
      const result = simulate({ ...input, requests, enableBlockReuse: true });
      const sum = result.requests.reduce((total, request) => total + request.reusedBlocks, 0);
      expect(result.iterations.at(-1)!.blocks.reused).toBe(sum);
      const begun = new Map<string | number, number>();
      for (const { scheduled, paused, blocks } of result.iterations) {
        expect(blocks.free + blocks.used).toBe(input.numBlocks);
        for (const id of paused) begun.delete(id);
        for (const { id, phase, contextBefore, contextAfter } of scheduled) {
          if (phase === 'generation') continue;
          expect(contextAfter).toBeGreaterThan(contextBefore);
          if (begun.has(id)) expect(contextBefore).toBe(begun.get(id));
          begun.set(id, contextAfter);
        }
      }
      for (const [index, { id, lastIteration, pauses }] of result.requests.entries()) {
        const last = result.iterations[lastIteration]!.scheduled.find((step) => step.id === id);
        expect(last?.generated).toBe(requests[index]!.maxNewTokens);
        resumed += pauses;
      }
      reused += sum;
    });
    fc.assert(property, { numRuns: draws(170) });
    expect(reused, 'prompts begin alike').toBeGreaterThan(30);
    expect(resumed, 'the pools are small enough').toBeGreaterThan(0);
  });
});
