import { describe, expect, it } from 'vitest';
import { vectorOfType } from '../../../../src/encoding/vector-types.js';
import {
  checkedClassification,
  checkedDocuments,
  checkedEmbedding,
  checkRerankOptions,
  checkScoreOptions,
} from '../../../../src/library/options/encoder-call-options.js';

describe('calls of an encoder', () => {
  it('take texts and token ids, one or several', () => {
    const given = ['a', [1, 2], Int32Array.of(3)];
    expect(checkedEmbedding(given, { inputType: 'query', onProgress: () => {} })).toBe(given);
    expect(checkedEmbedding('a', {})).toEqual(['a']);
    expect(checkedDocuments('q', 'a')).toEqual(['a']);
    checkRerankOptions({ top: 1, truncatePromptTokens: -1, instruction: 'Find cats.' });
  });

  it.each([
    [5, {}, 'embed needs a text or a list of texts; it was given 5.'],
    [['a', null], {}, 'Input 1 is null; a text, token ids or { image } is expected.'],
    [[5], {}, 'Input 0 is 5; a text, token ids or { image } is expected.'],
    [new Array(1), {}, /^Input 0 is .*; a text, token ids or \{ image \} is expected\.$/],
    ['a', 5, /^embed needs an object of options/],
    ['a', { dimension: 5 }, 'embed has no option "dimension"; did you mean dimensions?'],
    ['a', { inputType: 'x' }, /^inputType is "x"; it must be/],
    ['a', { signal: {} }, /it must be an AbortSignal/],
    ['a', { truncatePromptTokens: 0 }, /^truncatePromptTokens is 0; it must be -1 or a whole number from 1/],
    ['a', { truncateSide: 'left' }, /it must be/],
    ['a', { onProgress: true }, /^onProgress is true; it must be a function/],
  ])('refuse %o with %o', (texts, options, message) => {
    expect(() => checkedEmbedding(texts, options)).toThrow(message);
  });

  it('take pairs of texts to classify, and refuse what is none', () => {
    const given = ['a', ['a', 'b'], [1, 2, 3]];
    expect(checkedClassification(given, { rawScores: true, truncateSide: 'start' })).toBe(given);
    expect(() => checkedClassification([['a', 'b', 'c']], {})).toThrow(
      /^Input 0 is .*; a text, a pair of texts or token ids are expected\.$/,
    );
    expect(() => checkedClassification('a', { rawScores: 1 })).toThrow(/^rawScores is 1; it must be/);
    expect(() => checkedClassification('a', { dimensions: 1 })).toThrow(/^classify has no option/);
    expect(() => checkedEmbedding('a', { normalize: 'yes' })).toThrow(/^normalize is "yes"; it must be/);
  });

  it('refuse other values of scores and rankings', () => {
    expect(() => checkScoreOptions({ top: 1 })).toThrow(/^score has no option "top"/);
    expect(() => checkScoreOptions({ instruction: 5 })).toThrow(/^instruction is 5; it must be/);
    expect(() => checkRerankOptions({ top: 0 })).toThrow(/^top is 0; it must be/);
    expect(() => checkedDocuments(5, ['a'])).toThrow('query is 5; a text is expected.');
    expect(() => checkedDocuments('q', ['a', 5])).toThrow('documents must be texts.');
    expect(() => vectorOfType(Float32Array.of(1), 'int3' as 'int8')).toThrow(
      /^type is "int3"; it must be one of/,
    );
  });
});
