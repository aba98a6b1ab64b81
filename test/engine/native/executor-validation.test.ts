import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { SamplingBatch, SamplingOutput } from '../../../engine/decoding/sampling-batch.js';
import { NativeExecutor } from '../../../engine/native/native-executor.js';
import type { PackedBatch } from '../../../engine/packed-batch.js';
import { executorOptions } from '../../support/native-options.js';
import { makeSamplingBatch, makeSamplingOutput } from '../../support/sampling-rows.js';
import { makeStepBatch } from '../../support/step-batch.js';
import { makeTinyNetwork, type TinyNetwork } from '../../support/tiny-network.js';

let tiny: TinyNetwork;
let executor: NativeExecutor;
beforeAll(() => {
  tiny = makeTinyNetwork({ bias: true });
  executor = new NativeExecutor(
    tiny,
    executorOptions({ maxNumTokens: 8, maxNumSequences: 2, maxLogitRows: 4, maxSeqLen: 40, numBlocks: 4 }),
  );
});
afterAll(() => {
  executor.close();
  tiny.remove();
});

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

function validBatch(): Mutable<PackedBatch> {
  return makeStepBatch(
    [
      { tokens: [1, 2, 3], cached: 0, blocks: [0] },
      { tokens: Array.from({ length: 18 }, (_, i) => i), cached: 17, blocks: [1, 2] },
    ],
    { tokensPerBlock: 16, inverseFrequencies: tiny.inverseFrequencies, newBlocks: [0] },
  );
}

describe('a batch that is wrong', () => {
  it.each<[string, (batch: Mutable<PackedBatch>) => void, RegExp]>([
    [
      'too many tokens',
      (b) => {
        b.numTokens = 9;
      },
      /numTokens is 9, but this executor takes 1 to 8/,
    ],
    [
      'no tokens',
      (b) => {
        b.numTokens = 0;
      },
      /numTokens is 0/,
    ],
    [
      'too many sequences',
      (b) => {
        b.numSequences = 3;
      },
      /numSequences is 3, .* 1 to 2/,
    ],
    [
      'too many rows of logits',
      (b) => {
        b.numLogitRows = 5;
      },
      /numLogitRows is 5, .* 0 to 4/,
    ],
    [
      'too many new blocks',
      (b) => {
        b.numNewBlocks = 5;
      },
      /numNewBlocks is 5/,
    ],
    [
      'a fractional count',
      (b) => {
        b.numTokens = 3.5;
      },
      /numTokens must be a whole number/,
    ],
    [
      'a token beyond the vocabulary',
      (b) => {
        b.tokenIds[2] = 131;
      },
      /tokenIds\[2\] is 131, .*\[0, 131\)/,
    ],
    [
      'a negative token',
      (b) => {
        b.tokenIds[0] = -1;
      },
      /tokenIds\[0\] is -1/,
    ],
    [
      'a negative position',
      (b) => {
        b.positions[1] = -5;
      },
      /positions\[1\] is -5/,
    ],
    [
      'a slot beyond the pool',
      (b) => {
        b.slots[0] = 64;
      },
      /slots\[0\] is 64, .*\[0, 64\)/,
    ],
    [
      'a slot that is not its block',
      (b) => {
        b.slots[1] = 5;
      },
      /slots\[1\] is 5, but the block table of sequence 0/,
    ],
    [
      'a block beyond the pool',
      (b) => {
        b.blockTables[2] = 4;
      },
      /blockTables\[2\] is block 4, .* 4 blocks/,
    ],
    [
      'a new block beyond the pool',
      (b) => {
        b.newBlocks[0] = -1;
      },
      /newBlocks\[0\] is -1/,
    ],
    [
      'a row of logits beyond the tokens',
      (b) => {
        b.logitRows[1] = 4;
      },
      /logitRows\[1\] is 4, .*\[0, 4\)/,
    ],
    [
      'queries that go backwards',
      (b) => {
        b.queryStart[1] = 0;
      },
      /queryStart\[1\] is 0, .* above 0/,
    ],
    [
      'queries that leave tokens over',
      (b) => {
        b.queryStart[2] = 5;
      },
      /queryStart\[2\] is 5/,
    ],
    [
      'queries that begin late',
      (b) => {
        b.queryStart[0] = 1;
      },
      /queryStart\[0\] is 1, .* 0/,
    ],
    [
      'a context shorter than its chunk',
      (b) => {
        b.contextLength[0] = 2;
      },
      /contextLength\[0\] is 2, .* between 3/,
    ],
    [
      'a context longer than its table',
      (b) => {
        b.contextLength[1] = 33;
      },
      /contextLength\[1\] is 33, .* 32/,
    ],
    [
      'a rope row that does not exist',
      (b) => {
        b.ropeRows[1] = 1;
      },
      /ropeRows\[1\] is 1/,
    ],
    [
      'no frequencies',
      (b) => {
        b.ropeFrequencies = new Float32Array(3);
      },
      /ropeFrequencies/,
    ],
    [
      'a short array',
      (b) => {
        b.slots = new Int32Array(3);
      },
      /slots has 3 entries, but 4 are needed/,
    ],
    [
      'an array of another type',
      (b) => {
        Object.assign(b, { slots: new Float32Array(4) });
      },
      /slots must be an Int32Array/,
    ],
    [
      'a missing array',
      (b) => {
        Object.assign(b, { logitRows: undefined });
      },
      /logitRows must be an Int32Array/,
    ],
  ])('%s: named, and nothing changes', (_, spoil, message) => {
    const before = executor.forward(validBatch()).slice();
    const batch = validBatch();
    spoil(batch);
    expect(() => executor.forward(batch)).toThrow(message);
    expect(() => executor.step(batch, makeSamplingBatch([{}, {}]), makeSamplingOutput(2))).toThrow(message);
    expect(executor.forward(validBatch())).toEqual(before);
  });

  it('is named when it is no object', () => {
    expect(() => executor.forward(undefined as unknown as PackedBatch)).toThrow('batch must be an object');
  });
});

describe('sampling parameters that are wrong', () => {
  it.each<[string, (s: Mutable<SamplingBatch>, o: Mutable<SamplingOutput>) => void, RegExp]>([
    [
      'another number of rows',
      (s) => {
        s.numRows = 1;
      },
      /numRows is 1, .* 2 rows/,
    ],
    [
      'a negative temperature',
      (s) => {
        s.temperature[1] = -1;
      },
      /temperature\[1\]/,
    ],
    [
      'a temperature that is no number',
      (s) => {
        s.temperature[0] = Number.NaN;
      },
      /temperature\[0\]/,
    ],
    [
      'top-k below 0',
      (s) => {
        s.topK[0] = -1;
      },
      /topK\[0\]/,
    ],
    [
      'top-p above 1',
      (s) => {
        s.topP[0] = 1.5;
      },
      /topP\[0\]/,
    ],
    [
      'min-p above 1',
      (s) => {
        s.minP[0] = 2;
      },
      /minP\[0\]/,
    ],
    [
      'a repetition penalty of 0',
      (s) => {
        s.repetitionPenalty[0] = 0;
      },
      /repetitionPenalty\[0\]/,
    ],
    [
      'an infinite presence penalty',
      (s) => {
        s.presencePenalty[0] = Infinity;
      },
      /presencePenalty\[0\]/,
    ],
    [
      'a frequency penalty that is no number',
      (s) => {
        s.frequencyPenalty[1] = Number.NaN;
      },
      /frequencyPenalty\[1\]/,
    ],
    [
      'a banned token beyond the vocabulary',
      (s) => {
        s.banned[1] = 131;
      },
      /banned\[1\] is token 131/,
    ],
    [
      'banned tokens that go backwards',
      (s) => {
        s.bannedStart[1] = 2;
        s.bannedStart[2] = 1;
      },
      /bannedStart\[2\] is below/,
    ],
    [
      'banned tokens beyond their end',
      (s) => {
        s.bannedStart[2] = 3;
      },
      /bannedStart\[2\] is 3/,
    ],
    [
      'more log-probs than there is room for',
      (s) => {
        s.numTopLogProbs[1] = 3;
      },
      /numTopLogProbs\[1\] is 3/,
    ],
    [
      'history that goes backwards',
      (s) => {
        s.historyStart[1] = 2;
        s.historyStart[2] = 1;
      },
      /historyStart\[2\]/,
    ],
    [
      'history beyond its end',
      (s) => {
        s.historyStart[2] = 9;
      },
      /historyStart\[2\] is 9/,
    ],
    [
      'a token of the history beyond the vocabulary',
      (s) => {
        s.history[1] = 500;
      },
      /history\[1\] is token 500/,
    ],
    [
      'a prompt longer than the history',
      (s) => {
        s.historyPromptLength[0] = 4;
      },
      /historyPromptLength\[0\] is 4/,
    ],
    [
      'too few seeds',
      (s) => {
        s.seed = new BigUint64Array(1);
      },
      /seed has 1 entries, but 2/,
    ],
    [
      'seeds of another type',
      (s) => {
        Object.assign(s, { seed: new Int32Array(2) });
      },
      /seed must be a BigUint64Array/,
    ],
    [
      'too short an output',
      (_, o) => {
        o.tokens = Int32Array.of(-7);
      },
      /tokens has 1 entries, but 2/,
    ],
    [
      'no room for top log-probs',
      (_, o) => {
        o.topTokens = new Int32Array(3);
      },
      /topTokens has 3 entries, but 4/,
    ],
  ])('%s: named, and nothing is sampled', (_, spoil, message) => {
    const sampling = makeSamplingBatch([{ prompt: [1], generated: [2, 3], banned: [4, 5] }, {}]);
    const output = makeSamplingOutput(2, 2);
    output.tokens.fill(-7);
    executor.forward(validBatch());
    spoil(sampling, output);
    expect(() => executor.sample(sampling, output)).toThrow(message);
    expect(() => executor.step(validBatch(), sampling, output)).toThrow(message);
    expect(output.tokens.every((token) => token === -7)).toBe(true);
  });
});

describe('copyBlocks', () => {
  it('refuses lists that do not agree, and blocks that are not there', () => {
    expect(() => executor.copyBlocks(Int32Array.of(1), Int32Array.of(1, 2))).toThrow(
      'source has 1 blocks and target 2',
    );
    expect(() => executor.copyBlocks(Int32Array.of(4), Int32Array.of(1))).toThrow('source[0] is 4');
    expect(() => executor.copyBlocks(Int32Array.of(1), Int32Array.of(-1))).toThrow('target[0] is -1');
  });
});
