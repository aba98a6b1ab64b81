import { describe, expect, it } from 'vitest';
import { type SpeedFacts, slowParts } from '../../../src/commands/slow-parts.js';

const FAST: SpeedFacts = {
  fallback: null,
  executor: 'native',
  instructionSet: 'avx2',
  layerTypes: ['Q4_K', 'Q6_K'],
  widened: 0,
  weights: 'stored',
  weightBytes: 4e9,
  cacheTokens: 100_000,
  unproven: null,
};

describe('what will be slow', () => {
  it('is nothing where kernels read what is stored', () => {
    expect(slowParts(FAST)).toEqual([]);
    expect(slowParts({ ...FAST, layerTypes: ['BF16'], weights: 'bf16' })).toEqual([]);
    expect(slowParts({ ...FAST, layerTypes: ['Q8_0'], weights: 'int8' })).toEqual([]);
    expect(slowParts({ ...FAST, cacheTokens: null })).toEqual([]);
  });

  it.each<[string, Partial<SpeedFacts>, RegExp]>([
    [
      'an executor in the place of another',
      { fallback: 'The wasm executor runs.' },
      /^The wasm executor runs\.$/,
    ],
    ['scalar kernels', { instructionSet: 'scalar' }, /^The kernels compute one number at a time: .* no AVX2/],
    [
      'types that no kernel reads',
      { layerTypes: ['Q2_K', 'IQ3_S', 'Q2_K', 'Q4_K'] },
      /^No kernel reads Q2_K, IQ3_S: .* rounded to int8/,
    ],
    [
      'quantised matrices beside others',
      { layerTypes: ['Q4_K', 'F16'], weights: 'bf16' },
      /^Matrices of Q4_K run in bf16, since others are stored in F16/,
    ],
    ['quantised matrices that no smaller form holds', { widened: 3 }, /^3 quantised matrices run in bf16, /],
    ['one of them', { widened: 1 }, /^A quantised matrix runs in bf16, /],
    [
      'no room for a cache',
      { cacheTokens: 64 },
      /^The free memory leaves room for 64 tokens besides 4\.0 GB/,
    ],
    ['a pattern without a bound', { unproven: 'it may take long.' }, /limit of time: it may take long\.$/],
  ])('%s', (_, changes, sentence) => {
    const found = slowParts({ ...FAST, ...changes });
    expect(found).toHaveLength(1);
    expect(found[0]).toMatch(sentence);
  });

  it('says nothing of the instruction set of an executor that has none to choose', () => {
    expect(slowParts({ ...FAST, executor: 'wasm', instructionSet: 'scalar' })).toEqual([]);
  });
});
