import { describe, expect, it } from 'vitest';
import { type SimulationResult, simulate } from '../../../engine/simulation/simulate.js';
import { BASE, linesWithReuse, request, upTo } from './simulation-lines.js';

function reusedBlocks({ requests }: SimulationResult): number[] {
  return requests.map((one) => one.reusedBlocks);
}

const REUSE = { ...BASE, enableBlockReuse: true };

describe('simulate with block reuse', () => {
  it('begins a context behind the full blocks that an earlier request left', () => {
    const result = simulate({ ...REUSE, requests: [request('A', 0, upTo(9)), request('B', 1, upTo(9))] });
    // 9 tokens are 2 full blocks and a token; B takes both and computes the last token in a block of its own.
    expect(linesWithReuse(result)).toEqual(['A | A 0-9 1 |  | 3/5 0', 'B | B 8-9 1 |  | 3/5 2']);
    expect(reusedBlocks(result)).toEqual([0, 2]);
  });

  it('lets one of two equal prompts wait for the other, active but not scheduled', () => {
    const result = simulate({ ...REUSE, requests: [request('A', 0, upTo(9)), request('B', 0, upTo(9))] });
    expect(linesWithReuse(result)).toEqual(['A B | A 0-9 1 |  | 3/5 0', 'B | B 8-9 1 |  | 3/5 2']);
    expect(result.requests[1]).toEqual({
      id: 'B',
      firstIteration: 1,
      lastIteration: 1,
      pauses: 0,
      reusedBlocks: 2,
    });
  });

  it('computes the last prompt token at a block border: one full block is shared, 3 tokens of the next are kept', () => {
    const result = simulate({ ...REUSE, requests: [request('A', 0, upTo(8)), request('B', 1, upTo(8))] });
    expect(linesWithReuse(result)).toEqual(['A | A 0-8 1 |  | 2/6 0', 'B | B 7-8 1 |  | 2/6 1']);
  });

  it('shares blocks that are held: they are allocated once', () => {
    const requests = [request('A', 0, upTo(9), 3), request('B', 1, [...upTo(8), 77, 78])];
    // A holds 3 blocks of 12 tokens in the end. B shares 2 of them and has one of its own.
    expect(linesWithReuse(simulate({ ...REUSE, requests }))).toEqual([
      'A | A 0-9 1 |  | 3/5 0',
      'A B | B 8-10 1, A gen 2 |  | 4/4 2',
      'A | A gen 3 |  | 3/5 2',
    ]);
  });

  it('does not lower the blocks to completion of the one that waits', () => {
    // A keeps 2 of 4 blocks for 8 tokens; B needs 2 for 5, of which it would find one, and 2 are free: it starts.
    // With 3 blocks only 1 is free: B waits, though 1 block is all that it would allocate.
    const requests = [request('A', 0, upTo(5), 3), request('B', 1, upTo(5))];
    expect(linesWithReuse(simulate({ ...REUSE, numBlocks: 4, requests }))[1]).toBe(
      'A B | B 4-5 1, A gen 2 |  | 3/1 1',
    );
    expect(linesWithReuse(simulate({ ...REUSE, numBlocks: 3, requests }))[1]).toBe(
      'A B | A gen 2 |  | 2/1 0',
    );
  });

  it('promptLength shares nothing', () => {
    const requests = ['A', 'B'].map((id) => ({ id, arrivalIteration: 0, promptLength: 9, maxNewTokens: 1 }));
    expect(linesWithReuse(simulate({ ...REUSE, requests }))).toEqual(['A B | A 0-9 1, B 0-9 1 |  | 6/2 0']);
  });

  it('shortens the chunks of what is cached', () => {
    const chunk = { unit: 4, policy: 'FIRST_COME_FIRST_SERVED' as const };
    const requests = [request('A', 0, upTo(13)), request('B', 4, upTo(13))];
    expect(linesWithReuse(simulate({ ...REUSE, maxNumTokens: 4, chunk, requests }))).toEqual([
      'A | A 0-4 0 |  | 4/4 0',
      'A | A 4-8 0 |  | 4/4 0',
      'A | A 8-12 0 |  | 4/4 0',
      'A | A 12-13 1 |  | 4/4 0',
      'B | B 12-13 1 |  | 4/4 3',
    ]);
  });

  it('a resumed request finds what it left, as far as nobody needed it', () => {
    const result = simulate({
      ...REUSE,
      policy: 'MAX_UTILIZATION',
      numBlocks: 4,
      requests: [
        { id: 'A', arrivalIteration: 0, promptLength: 4, maxNewTokens: 6 },
        { id: 'B', arrivalIteration: 1, promptLength: 5, maxNewTokens: 5 },
      ],
    });
    // B leaves 8 tokens in 2 full blocks. A takes the tail of them; the head is there when B comes back.
    expect(linesWithReuse(result).slice(4)).toEqual([
      'A B | A gen 5, B gen 4 |  | 4/0 0',
      'A B | A gen 6 | B | 3/1 0',
      'B | B 4-9 5 |  | 3/1 1',
    ]);
    expect(reusedBlocks(result)).toEqual([0, 1]);
  });
});
