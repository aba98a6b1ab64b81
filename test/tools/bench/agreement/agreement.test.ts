import { describe, expect, it } from 'vitest';
import {
  AGREEMENT_HEAD,
  type AgreementPrompt,
  ALL_FORMATS,
  agreementCells,
  agreementOf,
  defaultSets,
  formatOf,
} from '../../../../tools/bench/agreement/agreement.js';
import { readGolden } from '../../../../tools/support/goldens.js';

const prompt = (gaps: number[]): AgreementPrompt => ({
  name: 'a prompt',
  promptIds: [1],
  tokens: [5, 6, 7, 8],
  gaps,
});
const prompts = [prompt([9, 9, 9, 9]), prompt([9, 0, 9, 9]), prompt([9, 9, 40, 9]), prompt([500, 0, 0, 0])];

describe('agreementOf', () => {
  it('counts the prompts with the same tokens, and the others by their first other token', () => {
    const answers = [
      [5, 6, 7, 8],
      [5, 1, 7, 8],
      [5, 6, 1, 1],
      [1, 6, 7, 8],
    ];
    expect(agreementOf(prompts, answers)).toEqual({
      prompts: 4,
      same: 1,
      nearTies: 1,
      tokensBefore: (4 + 1 + 2 + 0) / 4,
      medianGap: 0.04,
    });
  });

  it('has no gap where all are the same', () => {
    const found = agreementOf(prompts.slice(0, 1), [[5, 6, 7, 8]]);
    expect(found).toEqual({ prompts: 1, same: 1, nearTies: 0, tokensBefore: 4, medianGap: null });
  });

  it('refuses answers that are missing or too short', () => {
    expect(() => agreementOf(prompts, [])).toThrow('a prompt: expected 4 tokens, found none.');
    expect(() => agreementOf(prompts.slice(0, 1), [[5, 6]])).toThrow('expected 4 tokens, found 2.');
  });
});

describe('what is measured', () => {
  it('is each precision with each type of the cache', () => {
    expect(ALL_FORMATS).toHaveLength(12);
    expect(formatOf('int4/bf16')).toEqual({ precision: 'int4', kvDtype: 'bf16' });
    for (const text of ['int4', 'bf16/int4', ''])
      expect(() => formatOf(text)).toThrow(`--formats: expected some of f32/f32, `);
  });

  it('is the best set, and those of interest where they run', () => {
    const sets = ['avx2', 'avx512', 'avx512bf16', 'amx'];
    expect(defaultSets(sets, 'avx512bf16')).toEqual(['amx', 'avx512bf16', 'avx2']);
    expect(defaultSets(sets.slice(0, 2), 'avx512')).toEqual(['avx512', 'avx2']);
    expect(defaultSets(['neon'], 'neon')).toEqual(['neon']);
  });
});

describe('agreementCells', () => {
  it('has a row for each, by format', () => {
    const agreement = { prompts: 500, same: 449, nearTies: 3, tokensBefore: 30.04, medianGap: 0.0125 };
    const cells = agreementCells([
      { format: 'int4/bf16', isa: 'amx', agreement },
      { format: 'f32/f32', isa: 'avx2', agreement: { ...agreement, same: 500, medianGap: null } },
    ]);
    expect(cells).toEqual([
      ['f32', 'f32', 'avx2', '100.0 %', '0', '3', '30.0', ''],
      ['int4', 'bf16', 'amx', '89.8 %', '51', '3', '30.0', '0.013'],
    ]);
    for (const row of cells) expect(row).toHaveLength(AGREEMENT_HEAD.length);
  });
});

describe('the golden', () => {
  it('has 500 prompts of 8 to 200 tokens, each with 32 tokens and gaps', () => {
    const golden = readGolden<AgreementPrompt>('agreement');
    expect(golden).toHaveLength(500);
    for (const { name, promptIds, tokens, gaps } of golden) {
      expect(promptIds.length, name).toBeGreaterThanOrEqual(8);
      expect(promptIds.length, name).toBeLessThanOrEqual(200);
      expect([tokens.length, gaps.length], name).toEqual([32, 32]);
    }
    expect(new Set(golden.map(({ promptIds }) => promptIds.join())).size).toBe(500);
  });
});
