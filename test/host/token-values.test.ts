import { describe, expect, it } from 'vitest';
import { failureOf } from '../../callbacks/request-failure.js';
import { SharedTensors } from '../../callbacks/shared-tensors.js';
import type { TokenRequest } from '../../callbacks/token-request.js';
import { checkTokenFields } from '../../host/token-fields.js';
import { checkTokenValues } from '../../host/token-values.js';
import { optionOfInput } from '../../src/request-vocabulary.js';

const requestWith = (fields: object) => ({ promptTokens: [1], maxNewTokens: 1, ...fields }) as TokenRequest;

function refusalOf(fields: object): unknown {
  try {
    checkTokenFields(requestWith(fields));
    checkTokenValues(requestWith(fields));
  } catch (error) {
    return error;
  }
  return null;
}

describe('the values of a request', () => {
  it.each<[object, string]>([
    [{ maxNewTokens: null }, 'maxNewTokens is null; it must be an integer from 1'],
    [{ temperature: {} }, 'temperature is [object Object]; it must be a number from 0'],
    [{ cacheSalt: [null] }, 'cacheSalt is ; it must be a bigint'],
    [{ topLogProbs: 1.9 }, 'topLogProbs is 1.9; it must be an integer from 0'],
    [{ topLogProbs: Number.NaN }, 'topLogProbs is NaN; it must be an integer from 0'],
    [{ topContextLogProbs: 2 ** 32 }, 'topContextLogProbs is 4294967296; it must be an integer'],
    [{ queueWeight: -1 }, 'queueWeight is -1; it must be a number above 0 and at most 1000.'],
    [{ queueWeight: Number.NaN }, 'queueWeight is NaN; it must be a number above 0 and'],
    [{ reasoningBudget: { tokens: 1 } }, 'reasoningBudget.endToken is undefined; it must be an integer'],
    [{ reasoningBudget: { tokens: 1, endToken: 2.5 } }, 'reasoningBudget.endToken is 2.5'],
    [{ reasoningBudget: { tokens: 1, endToken: 2, beginToken: 'x' } }, "reasoningBudget.beginToken is 'x'"],
    [
      { beams: { width: 2, lenghtPenalty: 2 } },
      'lenghtPenalty is not a field of beams; did you mean lengthPenalty?',
    ],
    [
      { reasoningBudget: { tokens: 1, endtoken: 1 } },
      'endtoken is not a field of reasoningBudget; did you mean',
    ],
    [
      { guide: { type: 'regex', guide: 'a', flags: 'i' } },
      'flags is not a field of guide; known are type, guide.',
    ],
    [{ retention: { range: [] } }, 'range is not a field of retention; did you mean ranges?'],
    [
      { retention: { ranges: [{ start: 0, priority: 1, duration: 5 }] } },
      'duration is not a field of retention.ranges[0]; did you mean durationMs?',
    ],
    [
      { retention: { generated: { priority: 1, constructor: 5 } } },
      'constructor is not a field of retention.generated; known are priority, durationMs.',
    ],
    [{ promptTokens: [1, 2n] }, 'promptTokens holds 2n at place 1; whole numbers are expected.'],
    [{ promptTokens: [1, null] }, 'promptTokens holds null at place 1; whole numbers are expected.'],
    [{ promptTokens: ['1'] }, "promptTokens holds '1' at place 0; whole numbers are expected."],
    [{ temperature: '1' }, "temperature is '1'; it must be a number from 0 to 100."],
    [
      { endTokenIds: new Int32Array(1025) },
      'endTokenIds is a Int32Array; an array or Int32Array of at most 1024',
    ],
    [
      { logitBias: new Map([[2 ** 31, 1]]) },
      'logitBias holds 2147483648 at place 0; whole numbers of 32 bits are',
    ],
    [{ shared: {} }, 'shared is an object; a SharedTensors is expected.'],
    [{ logitBias: new Map([[5, 1n]]) }, 'logitBias has 1n for token 5; a number is expected.'],
    [{ queueWeight: Number.POSITIVE_INFINITY }, 'queueWeight is Infinity; it must be a number above 0'],
    [{ stopWords: [undefined, [1]] }, 'stopWords is an array; an array of arrays of token ids is expected.'],
    [
      { draftLogits: [undefined, new Float32Array(1)] },
      'draftLogits is an array; an array of Float32Arrays is',
    ],
    [{ logitBias: new Map([[1.5, 1]]) }, 'logitBias holds 1.5 at place 0; whole numbers are expected.'],
  ])('that are odd are refused as the request’s fault: %o', (fields, message) => {
    const error = refusalOf(fields);
    expect(String(error)).toContain(message);
    expect(failureOf(error)).toMatchObject({ kind: 'invalid', field: message.split(' ')[0] });
  });

  it('that many requests share are checked for the first of them', () => {
    let reads = 0;
    const tokens = Array.from({ length: 9 }, (_, i) => i);
    const list = new Proxy(tokens, {
      get: (target, key) => {
        if (key === '0') reads++;
        return Reflect.get(target, key);
      },
    });
    const shared = new SharedTensors();
    for (let i = 0; i < 5; i++) checkTokenValues(requestWith({ promptTokens: list, shared }));
    expect(reads).toBe(1);
    const wrong = [1, 0.5];
    for (let i = 0; i < 2; i++)
      expect(() => checkTokenValues(requestWith({ promptTokens: wrong, shared }))).toThrow('holds 0.5');
  });

  it('of beams have the names of their tensors', () => {
    expect(optionOfInput('beam_width')).toBe('beams');
    expect(optionOfInput('len_penalty')).toBeNull();
    expect(optionOfInput('logit_bias')).toBe('logitBias');
  });
});
