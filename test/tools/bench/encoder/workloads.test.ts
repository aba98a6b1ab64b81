import { describe, expect, it } from 'vitest';
import { type MeasuredSide, ratioTable } from '../../../../tools/bench/encoder/tables.js';
import { makeWorkloads, nameOf, textsOf } from '../../../../tools/bench/encoder/workloads.js';

/** A tokenizer of words, with a token at each end. */
const WORDS = { around: 2, countOf: async (text: string) => text.split(' ').length + 2 };
const tokensOf = (texts: readonly string[]) => texts.map((text) => text.split(' ').length + 2);

describe('workloads of encoders', () => {
  it('have texts of exactly the tokens that are asked for, as many as fit, and none twice', async () => {
    const sizes = { counts: [1, 4, 1024], lengths: [16, 128], mostTokens: 512 };
    const workloads = await makeWorkloads(sizes, WORDS);
    expect(workloads.map(nameOf)).toEqual(['1 x 16', '1 x 128', '4 x 16', '4 x 128', '32 x 16']);
    expect(workloads.map(textsOf)).toEqual([8, 4, 4, 4, 32]);
    for (const { calls, length } of workloads)
      for (const texts of calls) expect(new Set(tokensOf(texts))).toEqual(new Set([length]));
    expect(await makeWorkloads(sizes, WORDS)).toEqual(workloads);
  });

  it('draw mixed lengths with equal chances for each doubling', async () => {
    const [mixed] = await makeWorkloads({ counts: [900], lengths: [null], mostTokens: 1e6 }, WORDS);
    const tokens = tokensOf(mixed!.calls[0]!);
    expect([Math.min(...tokens), Math.max(...tokens)]).toEqual([8, expect.closeTo(510, -1)]);
    const middle = tokens.toSorted((a, b) => a - b)[450]!;
    expect(middle / 64).toBeCloseTo(1, 0);
  });

  it('refuse a tokenizer that cuts a word', async () => {
    const cutting = { around: 0, countOf: async (text: string) => text.split(' ').length + 1 };
    await expect(makeWorkloads({ counts: [1], lengths: [4], mostTokens: 9 }, cutting)).rejects.toThrow(
      'has 5 tokens where it should have 4',
    );
  });
});

describe('ratios of encoders', () => {
  it('stand beside the best peer, as the medians of rounds', async () => {
    const workloads = await makeWorkloads({ counts: [4], lengths: [16], mostTokens: 512 }, WORDS);
    const side = (name: string, seconds: number[]): MeasuredSide => ({
      name,
      precision: 'f32',
      isSkein: name.startsWith('Skein'),
      version: '',
      answers: [seconds.map((each) => ({ seconds: each, first: [1] }))],
    });
    const sides = [side('Skein f32', [1, 2, 3]), side('slow f32', [9, 9, 9]), side('fast f32', [2, 2, 9])];
    expect(ratioTable(workloads, sides)).toContain('| Skein f32, the best peer in f32 | 2.00 fast |');
    expect(ratioTable(workloads, sides.slice(0, 1))).toBeNull();
  });
});
