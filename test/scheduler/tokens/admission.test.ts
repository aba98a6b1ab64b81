import { describe, expect, it } from 'vitest';
import { worded } from '../../../base/named-text.js';
import { type AdmissionLimits, whyItCanNeverRun } from '../../../scheduler/tokens/admission.js';

const limits: AdmissionLimits = {
  maxInputLen: 100,
  maxSeqLen: 160,
  numBlocks: 20,
  tokensPerBlock: 8,
  maxAttentionWindow: Number.POSITIVE_INFINITY,
  microBatch: { maxBatchSize: 8, maxNumTokens: 64 },
};
const chunking = { policy: 'FIRST_COME_FIRST_SERVED', unit: 8 } as const;
const chunked: AdmissionLimits = { ...limits, microBatch: { ...limits.microBatch, chunking } };
const ask = (promptLength: number, maxNewTokens: number, more = {}) => ({
  promptLength,
  maxNewTokens,
  beamWidth: 1,
  draftLength: 0,
  ...more,
});

describe('whyItCanNeverRun', () => {
  it.each([
    ['the shortest', ask(1, 1), limits],
    ['exactly maxNumTokens', ask(64, 1), limits],
    ['exactly maxInputLen, in chunks', ask(100, 1), chunked],
    ['exactly maxSeqLen and exactly the pool', ask(100, 60), chunked],
    [
      'as many sequences as there are slots for states',
      ask(5, 5, { beamWidth: 3 }),
      { ...limits, numStateSlots: 3 },
    ],
    ['beams that just fit: 8 + 3 * 4 blocks', ask(64, 24, { beamWidth: 4 }), limits],
    [
      'a pool smaller than the sequence, with a window',
      ask(100, 60),
      { ...chunked, numBlocks: 4, maxAttentionWindow: 32 },
    ],
    [
      'a short prompt where no unit fits',
      ask(5, 1),
      { ...chunked, microBatch: { maxBatchSize: 1, maxNumTokens: 7, chunking } },
    ],
  ])('accepts %s', (_, request, given) => {
    expect(whyItCanNeverRun(request, given)).toBeNull();
  });

  it.each([
    [ask(0, 5), limits, 'The prompt is empty; at least 1 token is needed.'],
    [ask(5, 0), limits, '0 new tokens are asked for; at least 1 is needed.'],
    [
      ask(5, 5, { beamWidth: 4 }),
      { ...limits, numStateSlots: 3 },
      '4 sequences are asked for; there is memory for the states of 3.',
    ],
    [ask(101, 5), chunked, 'The prompt of 101 tokens is longer than maxInputLen = 100.'],
    [ask(60, 101), limits, 'The prompt of 60 tokens and 101 new tokens make 161, more than maxSeqLen = 160.'],
    [
      ask(60, 50),
      { ...limits, numBlocks: 13 },
      'The prompt of 60 tokens and 50 new tokens need 14 KV cache blocks of 8 tokens; the pool has 13.',
    ],
    [
      ask(64, 25, { beamWidth: 4 }),
      limits,
      'The prompt of 64 tokens and 25 new tokens in 4 sequences need 24 KV cache blocks of 8 tokens; the pool has 20.',
    ],
    [
      ask(65, 1),
      limits,
      'The prompt of 65 tokens does not fit into one iteration of maxNumTokens = 64; chunked context is off.',
    ],
    [
      ask(64, 9, { draftLength: 2 }),
      limits,
      'The prompt of 64 tokens and 2 draft tokens do not fit into one iteration of maxNumTokens = 64; ' +
        'chunked context is off.',
    ],
    [
      ask(3, 9, { beamWidth: 4, draftLength: 1 }),
      { ...limits, microBatch: { maxBatchSize: 8, maxNumTokens: 4 } },
      'A generation step of 4 sequence(s) and 1 draft token(s) takes 5 tokens, more than maxNumTokens = 4.',
    ],
    [
      ask(30, 9),
      { ...chunked, microBatch: { maxBatchSize: 8, maxNumTokens: 7, chunking } },
      'The prompt of 30 tokens needs chunks of 8 tokens; an iteration takes at most 7 context tokens.',
    ],
  ])('refuses with the numbers: %j', (request, given, sentence) => {
    expect(worded(whyItCanNeverRun(request, given)!.text)).toBe(sentence);
  });
});
