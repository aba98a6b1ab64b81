import { describe, expect, it } from 'vitest';
import { simulate } from '../../../engine/simulation/simulate.js';
import type { SimulationInput } from '../../../engine/simulation/simulation-input.js';
import { lines, request, spans } from './simulation-lines.js';

const TWO: SimulationInput = {
  policy: 'MAX_UTILIZATION',
  numBlocks: 4,
  tokensPerBlock: 4,
  maxNumRequests: 8,
  requests: [request('A', 0, 4, 6), request('B', 1, 5, 5)],
};

describe('simulate', () => {
  it('gives every field of the format, as the worked example has it', () => {
    const { iterations, requests } = simulate(TWO);
    expect(iterations).toHaveLength(7);
    expect(iterations[1]).toEqual({
      iteration: 1,
      active: ['A', 'B'],
      scheduled: [
        { id: 'B', phase: 'context', contextBefore: 0, contextAfter: 5, generated: 1 },
        { id: 'A', phase: 'generation', contextBefore: 4, contextAfter: 4, generated: 2 },
      ],
      paused: [],
      blocks: { free: 0, used: 4, reused: 0 },
    });
    expect(requests).toEqual([
      { id: 'A', firstIteration: 0, lastIteration: 5, pauses: 0, reusedBlocks: 0 },
      { id: 'B', firstIteration: 1, lastIteration: 6, pauses: 1, reusedBlocks: 0 },
    ]);
  });

  // 10 tokens in the end, so 3 blocks each; 4 are there.
  it('MAX_UTILIZATION pauses the last started request and recomputes prompt + generated', () => {
    expect(lines(simulate(TWO))).toEqual([
      'A | A 0-4 1 |  | 1/3',
      'A B | B 0-5 1, A gen 2 |  | 4/0', // A opens block 2 (past 4), B takes 2 for 5 tokens
      'A B | A gen 3, B gen 2 |  | 4/0',
      'A B | A gen 4, B gen 3 |  | 4/0',
      'A B | A gen 5, B gen 4 |  | 4/0',
      'A B | A gen 6 | B | 3/1', // A needs block 3 (past 8)
      'B | B 0-9 5 |  | 3/1', // 5 + 4 tokens
    ]);
  });

  // A window of 6 tokens is 2 blocks, so both fit: no request waits and none is paused.
  it('holds no more than a window of a request, which may be longer than the pool', () => {
    const requests = [request('A', 0, 4, 6), request('B', 1, 9, 12)];
    const result = simulate({ ...TWO, maxAttentionWindow: 6, requests });
    expect(lines(result).slice(0, 6)).toEqual([
      'A | A 0-4 1 |  | 1/3',
      'A B | B 0-9 1, A gen 2 |  | 4/0', // 3 blocks of prompt, but no more than 2
      'A B | A gen 3, B gen 2 |  | 4/0',
      'A B | A gen 4, B gen 3 |  | 4/0',
      'A B | A gen 5, B gen 4 |  | 4/0',
      'A B | A gen 6, B gen 5 |  | 4/0', // past 8, and past 13: written over the oldest
    ]);
    expect(spans(result)).toEqual({ A: [0, 5, 0], B: [1, 12, 0] }); // B: 21 tokens in a pool of 16
    expect(() => simulate({ ...TWO, requests })).toThrow(/can never run: .* need 6 KV cache blocks/);
  });

  // 3 sinks are a block, 5 more tokens two: a bubble of 1 token after the sinks.
  it('gives the sinks of a window blocks of their own', () => {
    const sizes = { ...TWO, requests: [request('A', 0, 9, 30)], maxAttentionWindow: 8 };
    expect(simulate({ ...sizes, sinkTokenLength: 3 }).iterations[20]!.blocks.used).toBe(3);
    expect(simulate(sizes).iterations[20]!.blocks.used).toBe(2);
  });

  it('GUARANTEED_NO_EVICT lets the second wait for its blocks to completion', () => {
    const result = simulate({ ...TWO, policy: 'GUARANTEED_NO_EVICT' });
    expect(lines(result)).toEqual([
      'A | A 0-4 1 |  | 1/3',
      'A B | A gen 2 |  | 2/2', // 3 free - 2 reserved for A leave 1; B needs 3
      'A B | A gen 3 |  | 2/2',
      'A B | A gen 4 |  | 2/2',
      'A B | A gen 5 |  | 2/2',
      'A B | A gen 6 |  | 3/1',
      'B | B 0-5 1 |  | 2/2',
      'B | B gen 2 |  | 2/2',
      'B | B gen 3 |  | 2/2',
      'B | B gen 4 |  | 2/2',
      'B | B gen 5 |  | 3/1', // past 8
    ]);
    expect(spans(result)).toEqual({ A: [0, 5, 0], B: [6, 10, 0] });
  });

  it('STATIC_BATCH admits nobody while anyone generates', () => {
    const requests = [request(1, 0, 4, 3), request(2, 0, 4, 2), request(3, 1, 4, 1)];
    const result = simulate({ ...TWO, policy: 'STATIC_BATCH', numBlocks: 8, requests });
    expect(lines(result)).toEqual([
      '1 2 | 1 0-4 1, 2 0-4 1 |  | 2/6',
      '1 2 3 | 1 gen 2, 2 gen 2 |  | 4/4',
      '1 3 | 1 gen 3 |  | 2/6',
      '3 | 3 0-4 1 |  | 1/7',
    ]);
    expect(spans(result)).toEqual({ 1: [0, 2, 0], 2: [0, 1, 0], 3: [3, 3, 0] });
  });

  it('FIRST_COME_FIRST_SERVED chunks take what generation leaves, in units, and the blocks of the whole prompt at once', () => {
    const result = simulate({
      ...TWO,
      policy: 'GUARANTEED_NO_EVICT',
      numBlocks: 16,
      maxNumTokens: 10,
      chunk: { unit: 4, policy: 'FIRST_COME_FIRST_SERVED' },
      requests: [request('A', 0, 3, 4), request('B', 1, 19, 2)],
    });
    expect(lines(result)).toEqual([
      'A | A 0-3 1 |  | 1/15',
      'A B | B 0-8 0, A gen 2 |  | 6/10', // 9 left: 8 in units; 5 blocks for 19 tokens
      'A B | B 8-16 0, A gen 3 |  | 7/9', // A opens block 2 (past 4)
      'A B | B 16-19 1, A gen 4 |  | 7/9', // the last chunk is no whole unit
      'B | B gen 2 |  | 5/11', // past 19: position 19 is in block 5
    ]);
  });

  it('EQUAL_PROGRESS gives each context a unit in turns', () => {
    const result = simulate({
      ...TWO,
      numBlocks: 8,
      tokensPerBlock: 8,
      maxNumTokens: 20,
      chunk: { unit: 8, policy: 'EQUAL_PROGRESS' },
      requests: [request('A', 0, 30, 1), request('B', 0, 6, 1), request('C', 0, 3, 2)],
    });
    expect(lines(result)).toEqual([
      'A B C | A 0-8 0, B 0-6 1, C 0-3 1 |  | 6/2', // 17 of 20: no second 8
      'A C | A 8-24 0, C gen 2 |  | 5/3', // 19 left: 8 + 8, and the last 6 do not fit
      'A | A 24-30 1 |  | 4/4',
    ]);
  });

  it('walks by priority, then arrival, and runs no more than maxNumRequests at once', () => {
    const requests = [
      request('late', 1, 4, 1, { priority: 0.9 }),
      request('low', 0, 4, 2),
      request('high', 0, 4, 1, { priority: 0.9 }),
    ];
    const result = simulate({
      ...TWO,
      policy: 'GUARANTEED_NO_EVICT',
      numBlocks: 8,
      maxNumRequests: 1,
      requests,
    });
    expect(lines(result)).toEqual([
      'high low | high 0-4 1 |  | 1/7',
      'late low | late 0-4 1 |  | 1/7',
      'low | low 0-4 1 |  | 1/7',
      'low | low gen 2 |  | 2/6',
    ]);
    expect(result.requests.map(({ id }) => id)).toEqual(['late', 'low', 'high']);
  });

  it('maxBatchSize limits an iteration; who does not run is active but not scheduled', () => {
    const requests = [request('A', 0, 4, 2), request('B', 0, 4, 1)];
    expect(lines(simulate({ ...TWO, maxBatchSize: 1, requests }))).toEqual([
      'A B | A 0-4 1 |  | 1/3',
      'A B | A gen 2 |  | 2/2',
      'B | B 0-4 1 |  | 1/3',
    ]);
  });

  it('a rejected draft takes blocks for its step only, and never reaches beyond the last token', () => {
    const requests = [request('A', 0, 4, 6, { draftLength: 5 })];
    // Blocks of past + 1 + draft: 4+1+4, 5+1+3, 6+1+2, 7+1+1 and 8+1+0 tokens: 3 blocks each time.
    expect(lines(simulate({ ...TWO, requests }))).toEqual([
      'A | A 0-4 1 |  | 1/3',
      'A | A gen 2 |  | 3/1',
      'A | A gen 3 |  | 3/1',
      'A | A gen 4 |  | 3/1',
      'A | A gen 5 |  | 3/1',
      'A | A gen 6 |  | 3/1',
    ]);
  });

  it('a draft counts in maxNumTokens', () => {
    const requests = [request('A', 0, 4, 3, { draftLength: 1 }), request('B', 0, 3, 3)];
    // 4 + 1 and 3 tokens do not fit into 6, then 2 and 3 do. A's second step has a draft of 1, its third has none.
    expect(lines(simulate({ ...TWO, maxNumTokens: 6, requests }))).toEqual([
      'A B | A 0-4 1 |  | 1/3',
      'A B | B 0-3 1, A gen 2 |  | 3/1',
      'A B | A gen 3, B gen 2 |  | 3/1',
      'B | B gen 3 |  | 2/2',
    ]);
  });

  it('without chunks a resumed prompt longer than an iteration takes is cut, and the rest generated again', () => {
    const result = simulate({ ...TWO, maxNumTokens: 8 });
    expect(lines(result).slice(5)).toEqual([
      'A B | A gen 6 | B | 3/1',
      'B | B 0-8 4 |  | 2/2', // 9 tokens are known; 8 fit, and token 4 is drawn again
      'B | B gen 5 |  | 3/1',
    ]);
    expect(spans(result)).toEqual({ A: [0, 5, 0], B: [1, 7, 1] });
  });

  it('lists iterations with nothing active, empty', () => {
    const result = simulate({ ...TWO, requests: [request('A', 2, 4, 1), request('B', 4, 4, 1)] });
    expect(lines(result)).toEqual([
      ' |  |  | 0/4',
      ' |  |  | 0/4',
      'A | A 0-4 1 |  | 1/3',
      ' |  |  | 0/4',
      'B | B 0-4 1 |  | 1/3',
    ]);
    expect(spans(result)).toEqual({ A: [2, 2, 0], B: [4, 4, 0] });
  });

  it('takes tokens for a prompt, as long as they are', () => {
    const withTokens = TWO.requests.map(({ promptLength, ...rest }) => ({
      ...rest,
      tokens: Array.from({ length: promptLength! }, (_, index) => index),
    }));
    expect(simulate({ ...TWO, requests: withTokens })).toEqual(simulate(TWO));
  });

  it('takes a beam width of 1, and no reuse, for what they are without being said', () => {
    const requests = TWO.requests.map((one) => ({ ...one, beamWidth: 1 }));
    expect(simulate({ ...TWO, enableBlockReuse: false, requests })).toEqual(simulate(TWO));
  });
});
