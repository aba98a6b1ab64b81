import { describe, expect, it } from 'vitest';
import { simulate } from '../../../engine/simulation/simulate.js';
import { BASE, lines, linesWithReuse, request, upTo } from './simulation-lines.js';

// By hand, blocks of 4 tokens. A prompt of 6 fills 1 block, which its beams share; the rest counts once for each beam.

describe('simulate with beams', () => {
  it('shares the full blocks of the prompt and counts all others for each beam', () => {
    const requests = [request('A', 0, 6, 4, { beamWidth: 3 })];
    expect(lines(simulate({ ...BASE, requests }))).toEqual([
      'A | A 0-6 1 |  | 4/4', // 1 + 3 * 1
      'A | A gen 2 |  | 4/4', // past 6
      'A | A gen 3 |  | 4/4', // past 7: 8 tokens fill the second block
      'A | A gen 4 |  | 7/1', // past 8: one more for each beam
    ]);
  });

  it('opens a block for each beam at once where the prompt ends at a border', () => {
    const requests = [request('A', 0, 8, 2, { beamWidth: 2 })];
    expect(lines(simulate({ ...BASE, requests }))).toEqual(['A | A 0-8 1 |  | 2/6', 'A | A gen 2 |  | 4/4']);
  });

  it('GUARANTEED_NO_EVICT sets the blocks of all beams aside', () => {
    // A needs 1 + 2 * 2 = 5 to completion (10 tokens), B 1 + 1 = 2 (8 tokens).
    const requests = [request('A', 0, 6, 4, { beamWidth: 2 }), request('B', 0, 5, 3)];
    expect(lines(simulate({ ...BASE, numBlocks: 7, requests }))[0]).toBe('A B | A 0-6 1, B 0-5 1 |  | 5/2');
    expect(lines(simulate({ ...BASE, numBlocks: 6, requests }))[0]).toBe('A B | A 0-6 1 |  | 3/3');
  });

  it('costs a token for each beam, and those of the draft once', () => {
    const requests = [request('A', 0, 4, 3, { beamWidth: 3, draftLength: 1 }), request('B', 1, 4)];
    // A: 3 + 1 tokens while it has a draft, 3 in its last step; B: 4. Its step with the draft is past 4 + 1 + 1 tokens.
    expect(lines(simulate({ ...BASE, maxNumTokens: 7, requests }))).toEqual([
      'A | A 0-4 1 |  | 1/7',
      'A B | A gen 2 |  | 4/4', // 3 left
      'A B | B 0-4 1, A gen 3 |  | 5/3', // 4 left
    ]);
  });

  it('drops what the beams have generated when it is paused', () => {
    const requests = [request('A', 0, 4, 6), request('B', 1, 4, 3, { beamWidth: 2 })];
    expect(lines(simulate({ ...BASE, policy: 'MAX_UTILIZATION', numBlocks: 4, requests }))).toEqual([
      'A | A 0-4 1 |  | 1/3',
      'A B | B 0-4 1, A gen 2 |  | 3/1',
      'A B | A gen 3 | B | 2/2', // B needs 2 more, 1 is free; it is the last that has started
      'A B | B 0-4 1, A gen 4 |  | 3/1',
      'A B | A gen 5 | B | 2/2',
      'A B | B 0-4 1, A gen 6 |  | 4/0', // A opens block 3 (past 8)
      'B | B gen 2 |  | 3/1',
      'B | B gen 3 |  | 3/1',
    ]);
  });

  it('finds and leaves the full blocks of prompts, and nothing that beams have generated', () => {
    const requests = [
      request('A', 0, upTo(6), 3, { beamWidth: 2 }),
      request('B', 3, upTo(6), 1, { beamWidth: 2 }),
    ];
    const result = simulate({ ...BASE, enableBlockReuse: true, requests });
    expect(linesWithReuse(result)).toEqual([
      'A | A 0-6 1 |  | 3/5 0',
      'A | A gen 2 |  | 3/5 0',
      'A | A gen 3 |  | 3/5 0',
      'B | B 4-6 1 |  | 3/5 1', // the second block of A, with 8 tokens, was not kept
    ]);
  });

  it('refuses beams that the pool cannot hold', () => {
    const requests = [request('A', 0, 6, 10, { beamWidth: 3 })];
    // 1 + 3 * 3.
    expect(() => simulate({ ...BASE, requests })).toThrow(
      'The prompt of 6 tokens and 10 new tokens in 3 sequences need 10 KV cache blocks of 4 tokens; the pool has 8.',
    );
  });
});
