import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Executor } from '../../../../engine/executors/executor.js';
import type { SamplingOutput } from '../../../../engine/packed-call/sampling-batch.js';
import { Random } from '../../../../tools/support/random.js';
import {
  makeSamplingBatch,
  makeSamplingOutput,
  type SamplingRow,
} from '../../../../tools/support/sampling-rows.js';
import { makeStepBatch } from '../../../../tools/support/step-batch.js';
import { makeTinyNetwork, type TinyNetwork } from '../../../../tools/support/tiny-network.js';
import { IDLE, NATIVE } from '../../../support/executors.js';
import { executorOptions } from '../../../support/native-options.js';

const VOCAB = 5003;
const ROWS = 64;

let tiny: TinyNetwork;
let executors: Executor[];
beforeAll(async () => {
  tiny = makeTinyNetwork({ vocabSize: VOCAB, hiddenSize: 8, intermediateSize: 8, numLayers: 1 });
  const options = executorOptions({ maxNumSequences: ROWS, maxLogitRows: ROWS, numBlocks: 1 });
  executors = [await NATIVE.open(tiny, options), await IDLE.open(tiny, options)];
});
afterAll(() => {
  for (const executor of executors) executor.close();
  tiny.remove();
});

/** Outputs of the native sampler and of the host's for the same logits. */
function sampleOnBoth(logits: readonly Float32Array[], rows: readonly SamplingRow[]): SamplingOutput[] {
  const sequences = logits.map(() => ({ tokens: [1], cached: 0, blocks: [0] }));
  const { inverseFrequencies } = tiny;
  const numTop = rows.reduce((sum, row) => sum + Math.max(0, row.numTopLogProbs ?? 0), 0);
  return executors.map((executor) => {
    const view = executor.forward(makeStepBatch(sequences, { tokensPerBlock: 16, inverseFrequencies }));
    for (const [row, values] of logits.entries()) view.set(values, row * VOCAB);
    const output = makeSamplingOutput(rows.length, numTop);
    executor.sample(makeSamplingBatch(rows, VOCAB), output);
    return output;
  });
}

/** Everything that a request can ask for, some of it in each row. */
function randomRow(random: Random, index: number): SamplingRow {
  const some = <T extends object>(part: number, value: T) => (random.uniform() < part ? value : {});
  const tokens = (count: number) => Array.from({ length: count }, () => random.below(VOCAB));
  return {
    seed: BigInt(random.below(2 ** 30)) << 31n,
    position: index,
    sequenceIndex: index % 3,
    numTopLogProbs: index % 4 === 0 ? random.below(40) : -1,
    prompt: tokens(30),
    generated: tokens(30),
    ...some(0.3, { repetitionPenalty: 0.6 + random.uniform() }),
    ...some(0.3, { presencePenalty: random.normal(), frequencyPenalty: random.normal() }),
    ...some(0.2, { noRepeatNgramSize: 1 + random.below(3) }),
    ...some(0.3, { banned: tokens(200) }),
    ...some(0.2, { allowed: tokens(400) }),
    ...some(0.2, { bias: { tokens: Int32Array.of(3, 3), values: Float32Array.of(1.1, -0.3) } }),
  };
}

function randomLogits(random: Random, levels: number): Float32Array {
  return Float32Array.from({ length: VOCAB }, () => {
    const logit = random.normal() * 3;
    return levels === 0 ? logit : Math.round(logit * levels) / levels;
  });
}

it.each([0, 2])('greedy rows are the native ones exactly, ties too (%i levels)', (levels) => {
  const random = new Random(41 + levels);
  for (let call = 0; call < 4; call++) {
    const rows = Array.from({ length: ROWS }, (_, i) => randomRow(random, i));
    const logits = rows.map(() => randomLogits(random, levels));
    const [native, host] = sampleOnBoth(logits, rows);
    expect([...host!.tokens]).toEqual([...native!.tokens]);
    expect([...host!.status]).toEqual([...native!.status]);
    expect([...host!.topTokens]).toEqual([...native!.topTokens]);
    for (const [i, logProb] of native!.logProbs.entries()) expect(host!.logProbs[i]).toBeCloseTo(logProb, 4);
  }
});

it('drawn rows are the native ones where no draw falls on a boundary', () => {
  const random = new Random(43);
  for (let call = 0; call < 4; call++) {
    const rows = Array.from(
      { length: ROWS },
      (_, i): SamplingRow => ({
        ...randomRow(random, i),
        temperature: 0.3 + random.uniform(),
        ...(i % 2 === 0 ? { topK: 1 + random.below(300) } : {}),
        ...(i % 3 === 0 ? { topP: random.uniform() } : {}),
        ...(i % 5 === 0 ? { minP: random.uniform() / 5 } : {}),
        ...(i % 7 === 0 ? { draft: { token: random.below(VOCAB), logits: randomLogits(random, 0) } } : {}),
      }),
    );
    const [native, host] = sampleOnBoth(
      rows.map(() => randomLogits(random, 0)),
      rows,
    );
    expect([...host!.tokens]).toEqual([...native!.tokens]);
  }
});

it('finds the same n-grams again where a history repeats itself, of any size', () => {
  const random = new Random(45);
  for (let call = 0; call < 8; call++) {
    const rows = Array.from({ length: ROWS }, (_, index): SamplingRow => {
      const ids = 1 + random.below(3);
      const history = Array.from({ length: 60 }, () => random.below(ids));
      const noRepeatNgramSize = 1 + random.below(60);
      return {
        prompt: history.slice(20),
        generated: history.slice(0, 20),
        noRepeatNgramSize,
        position: index,
      };
    });
    // The few tokens of the histories are by far the most probable ones.
    const logits = rows.map(() =>
      randomLogits(random, 0).map((logit, token) => logit + (token < 3 ? 50 : 0)),
    );
    const [native, host] = sampleOnBoth(logits, rows);
    expect([...host!.tokens]).toEqual([...native!.tokens]);
    expect([...host!.status]).toEqual([...native!.status]);
  }
});
