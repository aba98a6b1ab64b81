import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { simulate } from '../../../engine/simulation/simulate.js';
import { scheduleMicroBatch } from '../../../scheduler/tokens/micro-batch-scheduler.js';
import { PATIENCE } from '../../../scheduler/tokens/shortest-first.js';
import type { MicroBatchLimits } from '../../../scheduler/tokens/types.js';
import { draws } from '../../support/scale.js';
import { contextRequest } from '../../support/schedulable.js';

const UNIT = 8;

interface Prompt {
  arrival: number;
  length: number;
  priority: number;
}

/** Prompts through the scheduler alone, each of them gone when its context ends; the tokens of each iteration by request. */
function run(prompts: readonly Prompt[], limits: MicroBatchLimits): Map<bigint, number>[] {
  const waiting = prompts.map((prompt, index) => ({
    ...prompt,
    id: BigInt(index),
    position: 0,
    passedOver: 0,
  }));
  const iterations: Map<bigint, number>[] = [];
  while (waiting.some(({ position, length }) => position < length)) {
    const here = waiting
      .filter(({ arrival, position, length }) => arrival <= iterations.length && position < length)
      .sort((a, b) => b.priority - a.priority);
    const requests = here.map(({ id, length, position: contextPosition, priority, passedOver }) =>
      contextRequest(id, length, 5, { contextPosition, priority, passedOver }),
    );
    const tokens = new Map<bigint, number>();
    for (const { request, contextTokens } of scheduleMicroBatch(requests, limits)) {
      tokens.set(request.requestId, contextTokens);
    }
    for (const request of here) {
      const ran = tokens.get(request.id) ?? 0;
      request.position += ran;
      request.passedOver = ran > 0 ? 0 : request.passedOver + 1;
    }
    iterations.push(tokens);
    if (iterations.length > 5000) throw new Error('It does not end.');
  }
  return iterations;
}

const limitsOf = (maxNumTokens: number, longest?: number): MicroBatchLimits => ({
  maxBatchSize: 1000,
  maxNumTokens,
  chunking: {
    policy: 'SHORTEST_FIRST',
    unit: UNIT,
    ...(longest === undefined ? {} : { longestChunk: () => longest }),
  },
});

const prompt = fc.record({
  arrival: fc.integer({ min: 0, max: 40 }),
  length: fc.oneof(fc.integer({ min: 1, max: 20 }), fc.integer({ min: 1, max: 200 })),
  priority: fc.constant(0.5),
});
const history = fc
  .array(prompt, { minLength: 1, maxLength: 30 })
  .map((prompts) => prompts.sort((a, b) => a.arrival - b.arrival));
const longest = fc.option(fc.constantFrom(2, 8, 24), { nil: undefined });

describe('SHORTEST_FIRST', () => {
  it('does what its drawing shows', () => {
    const lengths = [100, 6, 3, 15, 4, 4, 4, 4, 4];
    const arrivals = [0, 1, 1, 2, 4, 5, 6, 7, 8];
    const { iterations } = simulate({
      policy: 'GUARANTEED_NO_EVICT',
      numBlocks: 100,
      tokensPerBlock: UNIT,
      maxNumRequests: 20,
      maxNumTokens: 20,
      chunk: { unit: UNIT, policy: 'SHORTEST_FIRST' },
      requests: lengths.map((promptLength, index) => ({
        id: 'ABCDEFGHI'[index]!,
        arrivalIteration: arrivals[index]!,
        promptLength,
        maxNewTokens: 1,
      })),
    });
    const drawn = iterations
      .slice(0, 9)
      .map(({ scheduled }) =>
        scheduled
          .map(({ id, contextBefore, contextAfter }) => `${id}${contextAfter - contextBefore}`)
          .join(' '),
      );
    expect(drawn).toEqual(['A16', 'B6 C3', 'D15', 'A16', 'E4', 'F4', 'G4', 'A16 H4', 'I4']);
  });

  /** Each before it in the list has its turns, then it: later requests do not count. */
  it('ends each prompt within a bound that only those before it make', () => {
    fc.assert(
      fc.property(history, fc.integer({ min: UNIT, max: 64 }), longest, (prompts, maxNumTokens, most) => {
        const iterations = run(prompts, limitsOf(maxNumTokens, most));
        const chunk = Math.min(maxNumTokens - (maxNumTokens % UNIT), most ?? Infinity);
        let bound = 0;
        for (const [index, { arrival, length }] of prompts.entries()) {
          bound = Math.max(bound, arrival) + (PATIENCE + 1) * Math.ceil(length / chunk);
          const end = iterations.findLastIndex((tokens) => tokens.has(BigInt(index)));
          expect(end).toBeLessThan(bound);
        }
      }),
      { numRuns: draws(100) },
    );
  });

  it('leaves a long prompt every fourth iteration of a flood of short ones, and to these the others', () => {
    const long = { arrival: 0, length: 400, priority: 0.5 };
    const flood = Array.from({ length: 400 }, (_, index) => ({
      arrival: 1 + (index >> 2),
      length: 5,
      priority: 0.5,
    }));
    const iterations = run([long, ...flood], limitsOf(20));
    const flooded = iterations.slice(1, 99);
    const turns = flooded.flatMap((tokens, index) => (tokens.has(0n) ? [index] : []));
    expect(turns).toEqual(Array.from({ length: 24 }, (_, turn) => 3 + 4 * turn));
    for (const turn of turns) expect(flooded[turn]!.get(0n)).toBe(16);
    // In an iteration in which it has no turn, all tokens go to the others.
    for (const [index, tokens] of flooded.entries())
      expect(tokens.size === 4 || turns.includes(index)).toBe(true);
  });

  it('never gives more than there is, wastes no iteration and passes no higher priority', () => {
    const mixed = history.chain((prompts) =>
      fc
        .array(fc.constantFrom(0.2, 0.5, 0.9), { minLength: prompts.length, maxLength: prompts.length })
        .map((priorities) => prompts.map((one, index) => ({ ...one, priority: priorities[index]! }))),
    );
    const budgets = fc.integer({ min: UNIT, max: 64 });
    fc.assert(
      fc.property(mixed, budgets, longest, (prompts, maxNumTokens, most) => {
        const done = prompts.map(() => 0);
        for (const [iteration, tokens] of run(prompts, limitsOf(maxNumTokens, most)).entries()) {
          const here = prompts.flatMap(({ arrival, length, priority }, index) =>
            arrival <= iteration && done[index]! < length ? [{ index, priority }] : [],
          );
          const sum = [...tokens.values()].reduce((total, count) => total + count, 0);
          expect(sum).toBeLessThanOrEqual(maxNumTokens);
          if (here.length > 0) expect(sum).toBeGreaterThan(0);
          const highest = Math.max(...here.map(({ priority }) => priority));
          const ofHighest = here.filter(({ priority }) => priority === highest);
          if (here.length > 0) expect(ofHighest.some(({ index }) => tokens.has(BigInt(index)))).toBe(true);
          for (const [id, count] of tokens) done[Number(id)]! += count;
        }
        expect(done).toEqual(prompts.map(({ length }) => length));
      }),
      { numRuns: draws(100) },
    );
  });
});
