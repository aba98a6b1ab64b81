import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CHAIN, NUM_CHAIN_VALUES } from '../../../../engine/decoding/sampler-chain.js';
import type {
  DraftRow,
  RowBias,
  RowChain,
  SamplingBatch,
  SamplingOutput,
} from '../../../../engine/packed-call/sampling-batch.js';
import { makeSamplingBatch, makeSamplingOutput } from '../../../../tools/support/sampling-rows.js';
import { WAYS } from '../../../support/executors.js';
import { SmallExecutor } from '../../../support/small-executor.js';
import { at, set } from '../../../support/spoil.js';

/** Masks of that many words of 131 tokens each. */
const masks = (maskOfRow: number[], numMasks: number) =>
  set('tokenMasks', { maskOfRow: Int32Array.from(maskOfRow), words: new Int32Array(5 * numMasks) });

const biasOf = (row: number, tokens: number[] | null = [1]) => ({
  row,
  tokens: tokens && Int32Array.from(tokens),
  values: Float32Array.of(1),
});
const drafts =
  (...entries: DraftRow[]) =>
  (sampling: SamplingBatch) =>
    set('draftRows', entries)(sampling);
const draftOf = (row: number, token: number, length = 131): DraftRow => ({
  row,
  token,
  logits: new Float32Array(length),
});
const biases =
  (...entries: RowBias[]) =>
  (sampling: SamplingBatch) =>
    set('biases', entries)(sampling);

const penalties =
  (...entries: RowBias[]) =>
  (sampling: SamplingBatch) =>
    set('penalties', entries)(sampling);
const chainOf = (row: number, place = 0, value = 1): RowChain => {
  const values = new Float64Array(NUM_CHAIN_VALUES);
  values[place] = value;
  return { row, values };
};
const chains =
  (...entries: RowChain[]) =>
  (sampling: SamplingBatch) =>
    set('chains', entries)(sampling);

let small: SmallExecutor;

describe.each(WAYS)('$name', (way) => {
  beforeAll(async () => {
    small = await SmallExecutor.open(way);
  });
  afterAll(() => small.close());

  describe('sampling parameters that are wrong', () => {
    it.each<[string, (sampling: SamplingBatch, output: SamplingOutput) => void, RegExp]>([
      ['another number of rows', set('numRows', 1), /numRows is 1, .* 2 rows/],
      ['a negative temperature', at('temperature', 1, -1), /temperature\[1\]/],
      ['a temperature that is no number', at('temperature', 0, Number.NaN), /temperature\[0\]/],
      ['top-k below 0', at('topK', 0, -1), /topK\[0\]/],
      ['top-p above 1', at('topP', 0, 1.5), /topP\[0\]/],
      ['min-p above 1', at('minP', 0, 2), /minP\[0\]/],
      ['a repetition penalty of 0', at('repetitionPenalty', 0, 0), /repetitionPenalty\[0\]/],
      ['an infinite presence penalty', at('presencePenalty', 0, Infinity), /presencePenalty\[0\]/],
      [
        'a frequency penalty that is no number',
        at('frequencyPenalty', 1, Number.NaN),
        /frequencyPenalty\[1\]/,
      ],
      ['an n-gram size below 0', at('noRepeatNgramSize', 1, -1), /noRepeatNgramSize\[1\]/],
      ['a draft of a row that there is not', drafts(draftOf(2, 1)), /draftRows has row 2/],
      ['two drafts of one row', drafts(draftOf(1, 1), draftOf(1, 1)), /draftRows has row 1/],
      ['a draft token beyond the vocabulary', drafts(draftOf(0, 131)), /draftRows has token 131/],
      ['a draft without logits', drafts(draftOf(0, 1, 5)), /logits of draftRows has 5 entries, but 131/],
      ['a bias of a row that there is not', biases(biasOf(2)), /biases has row 2/],
      ['two biases of one row', biases(biasOf(1), biasOf(1)), /biases has row 1/],
      ['a bias on a token beyond the vocabulary', biases(biasOf(0, [131])), /tokens of biases\[0\] is 131/],
      ['biases without values', biases(biasOf(0, [1, 2])), /values of biases has 1 entries, but 2/],
      [
        'too short a bias on the whole vocabulary',
        biases(biasOf(0, null)),
        /values of biases has 1 entries, but 131/,
      ],
      ['penalties of a row that there is not', penalties(biasOf(2)), /penalties has row 2/],
      ['a penalty without a value', penalties(biasOf(0, [1, 2])), /values of penalties has 1 entries, but 2/],
      ['a chain of a row that there is not', chains(chainOf(2)), /chains has row 2/],
      ['two chains of one row', chains(chainOf(1), chainOf(1)), /chains has row 1/],
      [
        'too short a chain',
        chains({ row: 0, values: new Float64Array(3) }),
        /values of chains has 3 entries/,
      ],
      ['a share above 1', chains(chainOf(0, CHAIN.typicalP, 1.5)), /values of chains\[0\] is 1\.5/],
      ['a sigma below 0', chains(chainOf(0, CHAIN.topNSigma, -1)), /values of chains\[1\] is -1/],
      ['an unknown mirostat', chains(chainOf(0, CHAIN.mirostat, 3)), /values of chains\[7\] is 3/],
      ['a state that is no number', chains(chainOf(1, CHAIN.mirostatMu, Number.NaN)), /chains\[10\] is nan/i],
      [
        'a chain in float32',
        set('chains', [{ row: 0, values: new Float32Array(12) }]),
        /values must be a Float64Array/,
      ],
      ['a banned token beyond the vocabulary', at('banned', 1, 131), /banned\[1\] is token 131/],
      [
        'banned tokens that go backwards',
        (s) => {
          s.bannedStart[1] = 2;
          s.bannedStart[2] = 1;
        },
        /bannedStart\[2\] is below/,
      ],
      ['banned tokens beyond their end', at('bannedStart', 2, 3), /bannedStart\[2\] is 3/],
      ['more log-probs than there are tokens', at('numTopLogProbs', 1, 132), /numTopLogProbs\[1\] is 132/],
      ['more log-probs than there is room for', at('numTopLogProbs', 1, 3), /topTokens has 2 entries, but 3/],
      [
        'no room for where they begin',
        (_, o) => set('topStart', new Int32Array(2))(o),
        /topStart has 2 entries/,
      ],
      [
        'history that goes backwards',
        (s) => {
          s.historyStart[1] = 2;
          s.historyStart[2] = 1;
        },
        /historyStart\[2\]/,
      ],
      ['history beyond its end', at('historyStart', 2, 9), /historyStart\[2\] is 9/],
      ['a token of the history beyond the vocabulary', at('history', 1, 500), /history\[1\] is token 500/],
      ['a prompt longer than the history', at('historyPromptLength', 0, 4), /historyPromptLength\[0\] is 4/],
      ['a mask that is not there', masks([0, 2], 2), /maskOfRow\[1\] is 2, but it must be in \[-1, 2\)/],
      ['too few rows with masks', masks([0], 2), /maskOfRow has 1 entries, but 2/],
      ['masks that are no object', set('tokenMasks', 3), /tokenMasks must be an object/],
      ['too few seeds', set('seed', new BigUint64Array(1)), /seed has 1 entries, but 2/],
      ['seeds of another type', set('seed', new Int32Array(2)), /seed must be a BigUint64Array/],
      ['too short an output', (_, o) => set('tokens', Int32Array.of(-7))(o), /tokens has 1 entries, but 2/],
      [
        'no room for top log-probs',
        (s, o) => {
          at('numTopLogProbs', 0, 2)(s);
          set('topLogProbs', new Float32Array(1))(o);
        },
        /topLogProbs has 1 entries, but 2/,
      ],
    ])('%s: named, and nothing is sampled', (_, spoil, message) => {
      const sampling = makeSamplingBatch([{ prompt: [1], generated: [2, 3], banned: [4, 5] }, {}]);
      const output = makeSamplingOutput(2, 2);
      output.tokens.fill(-7);
      small.executor.forward(small.validBatch());
      spoil(sampling, output);
      expect(() => small.executor.sample(sampling, output)).toThrow(message);
      expect(() => small.executor.step(small.validBatch(), sampling, output)).toThrow(message);
      expect(output.tokens.every((token) => token === -7)).toBe(true);
    });
  });
});
