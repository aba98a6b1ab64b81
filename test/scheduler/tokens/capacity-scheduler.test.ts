import { describe, expect, it } from 'vitest';
import { Simulation } from '../../../engine/simulation/simulation.js';
import { scheduleCapacity } from '../../../scheduler/tokens/capacity-scheduler.js';
import type { CapacityPolicy, SchedulableRequest } from '../../../scheduler/tokens/types.js';
import {
  contextRequest as context,
  generationRequest as generation,
  ids,
} from '../../support/schedulable.js';

interface Case {
  rule: string;
  requests: SchedulableRequest[];
  freeBlocks: number;
  maxNumRequests?: number;
  scheduled: bigint[];
  paused?: bigint[];
}

/** Blocks of 8 tokens, no window. */
function check(policy: CapacityPolicy, cases: Case[]): void {
  it.each(cases)('$rule', ({ requests, freeBlocks, maxNumRequests = 100, scheduled, paused = [] }) => {
    const kv = Object.freeze({ freeBlocks, tokensPerBlock: 8, maxAttentionWindow: Number.POSITIVE_INFINITY });
    const plan = scheduleCapacity(policy, Object.freeze(requests), kv, maxNumRequests);
    expect(ids(plan.scheduled)).toEqual(scheduled);
    expect(ids(plan.paused)).toEqual(paused);
  });
}

/** Generating, 8 + 2 tokens in 2 blocks of its final `blocks`; this step needs none. */
const midBlock = (id: bigint, blocks: number) => generation(id, 8, blocks * 8 - 8, 3, { blocksHeld: 2 });
/** Generating, its `held` blocks full; this step needs 1 more. */
const atBorder = (id: bigint, held: number) => generation(id, held * 8, 16, 1, { blocksHeld: held });
/** Not started; first step and completion both need `blocks`. */
const pending = (id: bigint, blocks: number) => context(id, blocks * 8 - 1, 1);

describe('GUARANTEED_NO_EVICT', () => {
  check('GUARANTEED_NO_EVICT', [
    { rule: 'nothing active, nothing scheduled', requests: [], freeBlocks: 4, scheduled: [] },
    {
      rule: 'generation first, wherever it is in the list',
      requests: [pending(1n, 1), midBlock(2n, 2), pending(3n, 1), midBlock(4n, 2)],
      freeBlocks: 2,
      scheduled: [2n, 4n, 1n, 3n],
    },
    {
      rule: 'what generation needs to completion is set aside before anyone starts',
      requests: [pending(1n, 2), midBlock(2n, 5)],
      freeBlocks: 4,
      scheduled: [2n],
    },
    {
      rule: 'exactly enough is enough',
      requests: [pending(1n, 2), midBlock(2n, 5)],
      freeBlocks: 5,
      scheduled: [2n, 1n],
    },
    {
      rule: 'the first that does not fit ends the scan: no overtaking',
      requests: [pending(1n, 2), pending(2n, 4), pending(3n, 1)],
      freeBlocks: 5,
      scheduled: [1n],
    },
    {
      rule: 'a request starts only if its whole generation fits, not just its prompt',
      requests: [context(1n, 8, 33)],
      freeBlocks: 5,
      scheduled: [],
    },
    {
      rule: 'between chunks a context needs only what it does not hold',
      requests: [context(1n, 24, 16, { contextPosition: 8, blocksHeld: 3 }), pending(2n, 2)],
      freeBlocks: 4,
      scheduled: [1n, 2n],
    },
    {
      rule: 'maxNumRequests counts generation too',
      requests: [pending(1n, 1), midBlock(2n, 2), pending(3n, 1)],
      freeBlocks: 9,
      maxNumRequests: 2,
      scheduled: [2n, 1n],
    },
    {
      rule: 'never pauses, even where nothing is left',
      requests: [midBlock(1n, 4), midBlock(2n, 4)],
      freeBlocks: 0,
      scheduled: [1n, 2n],
    },
    {
      rule: 'beams share full prompt blocks only: 1 + 2 * 4 blocks',
      requests: [context(1n, 12, 12, { beamWidth: 4 })],
      freeBlocks: 8,
      scheduled: [],
    },
    {
      rule: 'beams: one block more and it fits',
      requests: [context(1n, 12, 12, { beamWidth: 4 })],
      freeBlocks: 9,
      scheduled: [1n],
    },
    {
      rule: 'a newcomer in front that waits for the blocks of a started context does not block both',
      requests: [pending(1n, 5), context(2n, 16, 1, { contextPosition: 8, blocksHeld: 2 }), pending(3n, 1)],
      freeBlocks: 3,
      scheduled: [2n],
    },
    {
      rule: 'as many started contexts as maxNumRequests go on past such a newcomer',
      requests: [
        pending(1n, 9),
        ...[2n, 3n, 4n].map((id) => context(id, 16, 1, { contextPosition: 8, blocksHeld: 2 })),
      ],
      freeBlocks: 6,
      maxNumRequests: 2,
      scheduled: [2n, 3n],
    },
    {
      rule: 'beside running generation the newcomer still ends the scan',
      requests: [pending(1n, 5), context(2n, 16, 1, { contextPosition: 8, blocksHeld: 2 }), midBlock(3n, 2)],
      freeBlocks: 3,
      scheduled: [3n],
    },
  ]);

  it('runs the first of two requests that exclude each other to its end before the second starts', () => {
    const simulation = new Simulation({
      policy: 'GUARANTEED_NO_EVICT',
      numBlocks: 4,
      tokensPerBlock: 8,
      maxNumRequests: 8,
      microBatch: { maxBatchSize: 8, maxNumTokens: 64 },
    });
    simulation.arrive({ requestId: 1n, promptLength: 8, maxNewTokens: 16 });
    simulation.arrive({ requestId: 2n, promptLength: 8, maxNewTokens: 8 });
    const iterations = Array.from({ length: 24 }, () => simulation.iterate());
    // Request 1: one context iteration with token 1, then 15 more. Its 3 blocks are reserved, so 2 starts after it.
    expect(iterations.map(({ steps }) => steps.map((step) => step.requestId))).toEqual([
      ...Array.from({ length: 16 }, () => [1n]),
      ...Array.from({ length: 8 }, () => [2n]),
    ]);
    expect(iterations.map((iteration) => iteration.blocks.free).slice(0, 12)).toEqual([
      3, 2, 2, 2, 2, 2, 2, 2, 2, 1, 1, 1,
    ]);
    expect(simulation.active).toEqual([]);
  });
});

describe('STATIC_BATCH', () => {
  check('STATIC_BATCH', [
    {
      rule: 'starts a batch as far as it fits when nothing generates',
      requests: [pending(1n, 2), pending(2n, 2), pending(3n, 2)],
      freeBlocks: 5,
      scheduled: [1n, 2n],
    },
    {
      rule: 'starts nothing while anything generates, however much room there is',
      requests: [pending(1n, 1), midBlock(2n, 3), pending(3n, 1), midBlock(4n, 3)],
      freeBlocks: 50,
      scheduled: [2n, 4n],
    },
  ]);
});

describe('MAX_UTILIZATION', () => {
  check('MAX_UTILIZATION', [
    { rule: 'nothing active, nothing scheduled', requests: [], freeBlocks: 4, scheduled: [] },
    {
      rule: 'counts this step only: the prompt, whatever may be generated',
      requests: [context(1n, 8, 1000), context(2n, 8, 1000)],
      freeBlocks: 2,
      scheduled: [1n, 2n],
    },
    {
      rule: 'keeps the order of the list: generation is not preferred',
      requests: [pending(1n, 2), midBlock(2n, 9)],
      freeBlocks: 2,
      scheduled: [1n, 2n],
    },
    {
      rule: 'inside a block a step is free of charge',
      requests: [midBlock(1n, 9), midBlock(2n, 9)],
      freeBlocks: 0,
      scheduled: [1n, 2n],
    },
    {
      rule: 'later chunks of a context are free of charge',
      requests: [context(1n, 32, 9, { contextPosition: 8, blocksHeld: 4 }), pending(2n, 1)],
      freeBlocks: 1,
      scheduled: [1n, 2n],
    },
    {
      rule: 'the last started request is paused, and its blocks serve the one in need',
      requests: [atBorder(1n, 2), midBlock(2n, 9), midBlock(3n, 9)],
      freeBlocks: 0,
      scheduled: [1n, 2n],
      paused: [3n],
    },
    {
      rule: 'nothing at or behind the victim runs, though its blocks would be enough',
      requests: [atBorder(1n, 2), atBorder(2n, 4), pending(3n, 1)],
      freeBlocks: 0,
      scheduled: [1n],
      paused: [2n],
    },
    {
      rule: 'several victims, from the end forwards, until the one in need fits',
      requests: [pending(1n, 5), midBlock(2n, 9), midBlock(3n, 9), midBlock(4n, 9)],
      freeBlocks: 1,
      scheduled: [1n, 2n],
      paused: [4n, 3n],
    },
    {
      rule: 'a started context is a victim like any other',
      requests: [atBorder(1n, 2), context(2n, 32, 9, { contextPosition: 8, blocksHeld: 4 })],
      freeBlocks: 0,
      scheduled: [1n],
      paused: [2n],
    },
    {
      rule: 'a request that has not started is never a victim',
      requests: [atBorder(1n, 2), midBlock(2n, 9), pending(3n, 1)],
      freeBlocks: 0,
      scheduled: [1n],
      paused: [2n],
    },
    {
      rule: 'the one in need may be the victim itself',
      requests: [midBlock(1n, 9), atBorder(2n, 3), pending(3n, 1)],
      freeBlocks: 0,
      scheduled: [1n],
      paused: [2n],
    },
    {
      rule: 'without a victim the walk stops: nobody overtakes',
      requests: [midBlock(1n, 9), pending(2n, 3), pending(3n, 1)],
      freeBlocks: 2,
      scheduled: [1n],
    },
    {
      rule: 'a newcomer in front pauses those behind it',
      requests: [pending(1n, 3), midBlock(2n, 9), midBlock(3n, 9)],
      freeBlocks: 0,
      scheduled: [1n],
      paused: [3n, 2n],
    },
    {
      rule: 'maxNumRequests pauses too',
      requests: [pending(1n, 1), midBlock(2n, 9), midBlock(3n, 9)],
      freeBlocks: 9,
      maxNumRequests: 2,
      scheduled: [1n, 2n],
      paused: [3n],
    },
    {
      rule: 'maxNumRequests with a started request behind one that waits',
      requests: [midBlock(1n, 9), pending(2n, 1), midBlock(3n, 9)],
      freeBlocks: 9,
      maxNumRequests: 1,
      scheduled: [1n],
      paused: [3n],
    },
    {
      rule: 'the example in the file: A B run, D is paused, C and E wait',
      requests: [atBorder(1n, 4), atBorder(2n, 3), pending(3n, 2), midBlock(4n, 9), pending(5n, 1)],
      freeBlocks: 1,
      scheduled: [1n, 2n],
      paused: [4n],
    },
    {
      rule: 'each beam opens its own block: 4 are needed',
      requests: [generation(1n, 8, 16, 1, { beamWidth: 4, blocksHeld: 1 }), midBlock(2n, 9)],
      freeBlocks: 3,
      scheduled: [1n],
      paused: [2n],
    },
  ]);

  it('pauses in place and resumes with prompt + generated, and both end', () => {
    const simulation = new Simulation({
      policy: 'MAX_UTILIZATION',
      numBlocks: 3,
      tokensPerBlock: 8,
      maxNumRequests: 8,
      microBatch: { maxBatchSize: 8, maxNumTokens: 64 },
    });
    simulation.arrive({ requestId: 1n, promptLength: 8, maxNewTokens: 10 });
    simulation.arrive({ requestId: 2n, promptLength: 7, maxNewTokens: 12 });
    const iterations = Array.from({ length: 8 }, () => simulation.iterate());
    // Iteration 0 takes 1 block each, iteration 1 the third for request 1. Request 2 fills its block in iteration 1
    // and needs another one in iteration 2, where none is free: it is the last started, so it pauses itself.
    expect(iterations.map((iteration) => iteration.paused)).toEqual([[], [], [2n], [], [], [], [], []]);
    expect(iterations.map((iteration) => iteration.blocks.free)).toEqual([1, 0, 1, 1, 1, 1, 1, 1]);
    // Prompt 7 and the 2 tokens it had: 9 tokens need 2 blocks, so it waits in its place until request 1 has ended.
    expect(simulation.active[1]).toMatchObject({
      requestId: 2n,
      phase: 'context',
      promptLength: 9,
      maxNewTokens: 10,
    });
    while (iterations.at(-1)!.finished.length === 0) iterations.push(simulation.iterate());
    expect(ids(iterations.at(-1)!.finished)).toEqual([1n]);
    expect(iterations.length).toBe(10);
    const resumed = simulation.iterate();
    const recomputed = { requestId: 2n, phase: 'context', contextBefore: 0, contextAfter: 9, generated: 3 };
    expect(resumed.steps).toEqual([recomputed]);
    let last = resumed;
    let tokens = 3;
    for (; last.finished.length === 0; tokens += 1) last = simulation.iterate();
    expect(tokens).toBe(12);
    expect(simulation.kvCache.freeBlocks).toBe(3);
  });
});
