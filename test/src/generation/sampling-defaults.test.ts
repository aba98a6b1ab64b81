import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  knownDefaults,
  type SamplingDefaults,
  samplingFields,
  withDefaults,
} from '../../../src/generation/sampling-defaults.js';
import type { TextRequest } from '../../../src/generation/text-generation.js';

const request = (fields: Partial<TextRequest> = {}): TextRequest => ({
  promptTokens: [1],
  maxTokens: 5,
  ...fields,
});
const value = fc.option(fc.double({ min: 0, max: 1, noNaN: true }), { nil: undefined });
const settings = fc.record({ temperature: value, topP: value, minP: value, typicalP: value });

describe('defaults of a request', () => {
  it('hold for what it leaves open, and for nothing else', () => {
    fc.assert(
      fc.property(settings, settings, (defaults, own) => {
        const asked = withDefaults(defaults as SamplingDefaults, request(own));
        for (const name of ['temperature', 'topP', 'minP', 'typicalP'] as const)
          expect(asked[name]).toBe(own[name] ?? defaults[name]);
        expect(asked).toMatchObject({ promptTokens: [1], maxTokens: 5 });
      }),
    );
  });

  it('leave a request of 0 at 0, and do not change how long an answer may be', () => {
    const defaults = { temperature: 0.7, maxTokens: 99 };
    expect(withDefaults(defaults, request({ temperature: 0 }))).toEqual(request({ temperature: 0 }));
    expect(withDefaults(undefined, request())).toEqual(request());
  });

  it('are none for a beam search, which draws nothing', () => {
    const defaults = { temperature: 0.7, topK: 20, repetitionPenalty: 1.1 };
    const beams = request({ beams: { width: 2 } });
    expect(withDefaults(defaults, beams)).toEqual(beams);
    expect(withDefaults(defaults, request({ beams: { width: 1 } }))).toMatchObject(defaults);
  });

  it('never combine n-grams with a window of the penalties, which the engine refuses', () => {
    const both = { noRepeatNgramSize: 3, penaltyLastN: 64 };
    expect(withDefaults(both, request())).toEqual(request({ noRepeatNgramSize: 3 }));
    expect(withDefaults(both, request({ penaltyLastN: 8 }))).toEqual(request({ penaltyLastN: 8 }));
    expect(withDefaults({ penaltyLastN: 64 }, request({ noRepeatNgramSize: 2 }))).toEqual(
      request({ noRepeatNgramSize: 2 }),
    );
    expect(withDefaults(both, request({ noRepeatNgramSize: 0 }))).toMatchObject({ penaltyLastN: 64 });
  });

  it('have the names of the API', () => {
    expect(samplingFields({ topK: 1, penaltyLastN: 2, maxTokens: 3 })).toEqual({
      top_k: 1,
      repeat_last_n: 2,
      max_tokens: 3,
    });
    expect(samplingFields()).toEqual({});
  });

  it('from another machine are those that a request could have', () => {
    const told = { temperature: 0.5, topP: 2, topK: 1.5, minLength: 3, seed: 1, maxTokens: 10, other: 1 };
    expect(knownDefaults(told)).toEqual({ temperature: 0.5, maxTokens: 10 });
    for (const odd of [undefined, null, 'x', [1], { temperature: '1' }])
      expect(knownDefaults(odd)).toEqual({});
  });
});
