import { describe, expect, it } from 'vitest';
import { simulate } from '../../../engine/simulation/simulate.js';
import { BASE, lines, linesWithReuse, request, upTo } from './simulation-lines.js';

// Every number is worked out by hand from the rules; the comments show how. Blocks have 4 tokens.

describe('MAX_UTILIZATION', () => {
  const policy = 'MAX_UTILIZATION';

  it('resumes in place, and nothing behind the victim runs in its iteration', () => {
    const requests = [request('A', 0, 4, 6), request('B', 1, 5, 5), request('C', 5, 1)];
    expect(lines(simulate({ ...BASE, policy, numBlocks: 4, requests })).slice(4)).toEqual([
      'A B | A gen 5, B gen 4 |  | 4/0',
      'A B C | A gen 6 | B | 3/1', // C would fit into the block that is left, but stands after B
      'B C | B 0-9 5, C 0-1 1 |  | 4/0',
    ]);
  });

  it('pauses the last that has started, and only as many as it takes', () => {
    const requests = [request('A', 0, 8, 5), request('B', 0, 7, 5), request('C', 0, 7, 3)];
    expect(lines(simulate({ ...BASE, policy, numBlocks: 6, requests }))).toEqual([
      'A B C | A 0-8 1, B 0-7 1, C 0-7 1 |  | 6/0',
      'A B C | A gen 2, B gen 2 | C | 5/1', // A opens a block (past 8); C gives 2 back; B's 8th token fits
      'A B C | A gen 3, B gen 3 |  | 6/0', // B opens a block (past 8); C needs 2 for 7 + 1 tokens
      'A B C | A gen 4, B gen 4 |  | 6/0',
      'A B C | A gen 5, B gen 5 |  | 6/0',
      'C | C 0-8 2 |  | 2/4',
      'C | C gen 3 |  | 3/3', // past 8
    ]);
  });

  it('pauses a context between two chunks; it had no tokens to keep', () => {
    const chunk = { unit: 4, policy: 'FIRST_COME_FIRST_SERVED' as const };
    const requests = [request('A', 0, 7, 4), request('B', 1, 11)];
    expect(lines(simulate({ ...BASE, policy, numBlocks: 5, maxNumTokens: 7, chunk, requests }))).toEqual([
      'A | A 0-7 1 |  | 2/3',
      'A B | B 0-4 0, A gen 2 |  | 5/0', // 6 left, 4 in units; 3 blocks for 11 tokens
      'A B | A gen 3 | B | 3/2', // A opens a block (past 8)
      'A B | A gen 4 |  | 3/2', // B needs 3
      'B | B 0-4 0 |  | 3/2',
      'B | B 4-11 1 |  | 3/2', // 7 tokens and 7 left
    ]);
  });

  it('pauses for a priority where maxNumRequests run already', () => {
    const requests = [request('low', 0, 4, 3), request('high', 1, 4, 1, { priority: 0.9 })];
    expect(lines(simulate({ ...BASE, policy, maxNumRequests: 1, requests }))).toEqual([
      'low | low 0-4 1 |  | 1/7',
      'high low | high 0-4 1 | low | 1/7',
      'low | low 0-5 2 |  | 2/6', // 4 + 1 tokens, 2 to go
      'low | low gen 3 |  | 2/6',
    ]);
  });

  it('with a horizon, starts nobody that could not last so long beside the others', () => {
    const requests = [request('A', 0, 4, 6), request('B', 1, 5, 5)];
    // In 4 tokens A grows by 1 block (from 4 to 8 in the cache), and B needs ceil(9 / 4) = 3; 3 are free.
    const result = simulate({ ...BASE, policy, numBlocks: 4, startHorizon: 4, requests });
    expect(lines(result).slice(0, 2)).toEqual(['A | A 0-4 1 |  | 1/3', 'A B | A gen 2 |  | 2/2']);
    expect(result.requests.map(({ pauses, lastIteration }) => [pauses, lastIteration])).toEqual([
      [0, 5],
      [0, 10],
    ]);
  });
});

describe('GUARANTEED_NO_EVICT', () => {
  it('lets nobody overtake the first that does not fit', () => {
    const requests = [request('A', 0, 4, 4), request('B', 0, 8, 4), request('C', 0, 2)];
    // To completion A needs 2 blocks, B 3, C 1; 4 are there.
    expect(lines(simulate({ ...BASE, numBlocks: 4, requests }))).toEqual([
      'A B C | A 0-4 1 |  | 1/3',
      'A B C | A gen 2 |  | 2/2',
      'A B C | A gen 3 |  | 2/2',
      'A B C | A gen 4 |  | 2/2',
      'B C | B 0-8 1, C 0-2 1 |  | 3/1',
      'B | B gen 2 |  | 3/1',
      'B | B gen 3 |  | 3/1',
      'B | B gen 4 |  | 3/1',
    ]);
  });

  it('with a limit to waiting, lets the aged pass what came later, whatever its priority', () => {
    const high = (id: string, arrival: number) => request(id, arrival, 4, 1, { priority: 0.9 });
    const requests = [request('low', 0, 4), high('a', 0), high('b', 1), high('c', 2), high('d', 3)];
    const input = { ...BASE, maxNumRequests: 1, requests };
    // low waits in iterations 0, 1 and 2.
    expect(lines(simulate({ ...input, maxWaitIterations: 3 }))).toEqual([
      'a low | a 0-4 1 |  | 1/7',
      'b low | b 0-4 1 |  | 1/7',
      'c low | c 0-4 1 |  | 1/7',
      'low d | low 0-4 1 |  | 1/7',
      'd | d 0-4 1 |  | 1/7',
    ]);
    expect(lines(simulate(input))[3]).toBe('d low | d 0-4 1 |  | 1/7');
  });
});

describe('chunks', () => {
  it('are at most maxContextLength long', () => {
    const chunk = { unit: 4, policy: 'FIRST_COME_FIRST_SERVED' as const, maxContextLength: 6 };
    expect(lines(simulate({ ...BASE, chunk, requests: [request('A', 0, 10)] }))).toEqual([
      'A | A 0-4 0 |  | 3/5', // 6, rounded down to the unit
      'A | A 4-10 1 |  | 3/5', // the last 6 are no longer than that
    ]);
  });

  it('are cut where a draft does not fit beside them, and then take its place', () => {
    const chunk = { unit: 4, policy: 'FIRST_COME_FIRST_SERVED' as const };
    const requests = [request('A', 0, 6, 5, { draftLength: 2 })];
    // 6 + 2 tokens do not fit into 7, the 6 alone do. Then past + 1 + draft: 6+1+2, 7+1+2, 8+1+1, 9+1+0 tokens.
    expect(lines(simulate({ ...BASE, maxNumTokens: 7, chunk, requests }))).toEqual([
      'A | A 0-6 1 |  | 2/6',
      'A | A gen 2 |  | 3/5',
      'A | A gen 3 |  | 3/5',
      'A | A gen 4 |  | 3/5',
      'A | A gen 5 |  | 3/5',
    ]);
  });

  it('of EQUAL_PROGRESS go on in turns past one that would pass the limit', () => {
    const chunk = { unit: 4, policy: 'EQUAL_PROGRESS' as const };
    const requests = [request('A', 0, 9), request('B', 0, 12)];
    // 4 and 4; 4 more for A leave 1, too little for B; the last 1 of A fits.
    expect(lines(simulate({ ...BASE, maxNumTokens: 13, chunk, requests }))).toEqual([
      'A B | A 0-9 1, B 0-4 0 |  | 6/2',
      'B | B 4-12 1 |  | 3/5',
    ]);
  });

  it('are not cut without the option: the first context that does not fit ends the walk', () => {
    const requests = [request('A', 0, 3, 3), request('B', 1, 8, 1, { priority: 0.9 })];
    const input = { ...BASE, maxNumTokens: 8, requests };
    // MAX_UTILIZATION keeps the order of the list: B takes all 8 tokens, and A, with capacity, does not run.
    expect(lines(simulate({ ...input, policy: 'MAX_UTILIZATION' }))).toEqual([
      'A | A 0-3 1 |  | 1/7',
      'B A | B 0-8 1 |  | 3/5',
      'A | A gen 2 |  | 1/7',
      'A | A gen 3 |  | 2/6', // past 4
    ]);
    // GUARANTEED_NO_EVICT puts generation first: 7 tokens are left for B's 8.
    expect(lines(simulate(input))).toEqual([
      'A | A 0-3 1 |  | 1/7',
      'B A | A gen 2 |  | 1/7',
      'B A | A gen 3 |  | 2/6',
      'B | B 0-8 1 |  | 2/6',
    ]);
  });
});

describe('block reuse', () => {
  const input = { ...BASE, enableBlockReuse: true };

  it.each(['GUARANTEED_NO_EVICT', 'MAX_UTILIZATION'] as const)(
    '%s: a request that waits for a block does not hold up the next',
    (policy) => {
      const requests = [request('A', 0, upTo(9)), request('B', 0, upTo(9)), request('C', 0, [7, 7, 7, 7, 7])];
      expect(linesWithReuse(simulate({ ...input, policy, requests }))).toEqual([
        'A B C | A 0-9 1, C 0-5 1 |  | 5/3 0',
        'B | B 8-9 1 |  | 3/5 2',
      ]);
    },
  );

  it('waits for a context that runs in chunks until it is complete', () => {
    const chunk = { unit: 4, policy: 'FIRST_COME_FIRST_SERVED' as const };
    const requests = [request('A', 0, upTo(12)), request('B', 1, upTo(12))];
    expect(linesWithReuse(simulate({ ...input, maxNumTokens: 8, chunk, requests }))).toEqual([
      'A | A 0-8 0 |  | 3/5 0',
      'A B | A 8-12 1 |  | 3/5 0', // 4 tokens are left, and B waits
      'B | B 11-12 1 |  | 3/5 2', // 2 full blocks, and 3 tokens of the one with the last prompt token
    ]);
  });

  it('begins in the middle of a block where only its beginning is common', () => {
    const requests = [request('A', 0, upTo(9)), request('B', 1, [...upTo(6), 77, 78])];
    expect(linesWithReuse(simulate({ ...input, requests }))).toEqual([
      'A | A 0-9 1 |  | 3/5 0',
      'B | B 6-8 1 |  | 2/6 1', // 4 tokens shared, 2 copied
    ]);
  });

  it('neither finds nor delays across the last full block of a prompt that ends at a border', () => {
    // Prompts of 4 tokens fill a block; the last token is computed, so of the block 3 tokens can be found.
    const requests = [request('A', 0, upTo(4)), request('B', 1, upTo(5)), request('C', 2, upTo(4))];
    expect(linesWithReuse(simulate({ ...input, requests }))).toEqual([
      'A | A 0-4 1 |  | 1/7 0',
      'B | B 4-5 1 |  | 2/6 1',
      'C | C 3-4 1 |  | 1/7 1',
    ]);
  });
});

describe('STATIC_BATCH', () => {
  it('ends each request with its own last token, without padding and without empty slots', () => {
    const requests = [request('A', 0, 2, 3), request('B', 0, 7, 1), request('C', 0, 3, 2)];
    // Padded to the longest, 3 rows of 7 would be 21 tokens; unpadded they are 12.
    expect(lines(simulate({ ...BASE, policy: 'STATIC_BATCH', maxNumTokens: 12, requests }))).toEqual([
      'A B C | A 0-2 1, B 0-7 1, C 0-3 1 |  | 4/4',
      'A C | A gen 2, C gen 2 |  | 2/6',
      'A | A gen 3 |  | 1/7',
    ]);
  });

  it('has no reuse delay: a batch starts together', () => {
    const requests = [request('A', 0, upTo(9)), request('B', 0, upTo(9))];
    const result = simulate({ ...BASE, policy: 'STATIC_BATCH', enableBlockReuse: true, requests });
    expect(linesWithReuse(result)).toEqual(['A B | A 0-9 1, B 0-9 1 |  | 6/2 0']);
  });
});
