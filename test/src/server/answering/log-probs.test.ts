import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { chatLogProbs, chatLogProbsJson } from '../../../../src/server/answering/log-probs.js';
import { toyCodec } from '../../support/toy-codec.js';

/** Any byte: quotes, control characters and parts of characters too. */
const token = fc.integer({ min: 0, max: 255 });
const logProb = fc.oneof(fc.float({ max: 0, noNaN: true }), fc.constant(Number.NEGATIVE_INFINITY));
const named = fc.record({ token, logProb });
const entries = fc.array(
  fc.record({
    token,
    logProb,
    offset: fc.nat(),
    codePointOffset: fc.nat(),
    top: fc.array(named, { maxLength: 3 }),
  }),
  { maxLength: 4 },
);

describe('chatLogProbsJson', () => {
  it('is the JSON of chatLogProbs, whatever was written before', () => {
    fc.assert(
      fc.property(entries, (some) => {
        expect(chatLogProbsJson(toyCodec, some)).toBe(JSON.stringify(chatLogProbs(toyCodec, some)));
      }),
    );
  });
});
