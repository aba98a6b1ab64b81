import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DEFAULT_SAMPLING_PARAMS } from '../../../../callbacks/sampling-params.js';
import { CHAIN, chainValuesOf } from '../../../../engine/decoding/sampler-chain.js';
import type { Executor } from '../../../../engine/executors/executor.js';
import { ROW_NO_TOKEN_LEFT, ROW_NOT_FINITE, ROW_OK } from '../../../../engine/packed-call/sampling-batch.js';
import { Random } from '../../../../tools/support/random.js';
import {
  makeSamplingBatch,
  makeSamplingOutput,
  type SamplingRow,
} from '../../../../tools/support/sampling-rows.js';
import { makeStepBatch } from '../../../../tools/support/step-batch.js';
import { makeTinyNetwork, type TinyNetwork } from '../../../../tools/support/tiny-network.js';
import { SAMPLERS } from '../../../support/executors.js';
import { type NaiveChain, naiveChain, naiveMirostat } from '../../../support/naive-chain.js';
import { naiveUniform } from '../../../support/naive-sampling.js';
import { executorOptions } from '../../../support/native-options.js';

const VOCAB = 1013;
const MAX_ROWS = 64;
const SEED = 77n;
const XTC_DRAW = 0xffff_ffff;
let tiny: TinyNetwork;
let executor: Executor;
beforeAll(() => {
  tiny = makeTinyNetwork({ vocabSize: VOCAB, hiddenSize: 8, intermediateSize: 8, numLayers: 1 });
});
afterAll(() => tiny.remove());

function sample(logits: readonly Float32Array[], rows: readonly SamplingRow[]) {
  const sequences = logits.map(() => ({ tokens: [1], cached: 0, blocks: [0] }));
  const { inverseFrequencies } = tiny;
  const view = executor.forward(makeStepBatch(sequences, { tokensPerBlock: 16, inverseFrequencies }));
  for (const [row, values] of logits.entries()) view.set(values, row * VOCAB);
  const output = makeSamplingOutput(rows.length);
  executor.sample(makeSamplingBatch(rows, VOCAB), output);
  return output;
}

const chainOf = (chain: NaiveChain) => chainValuesOf({ ...DEFAULT_SAMPLING_PARAMS, ...chain })!;

function rowOf(chain: NaiveChain, position: number): SamplingRow {
  const { temperature = 1, topK = 0, topP = 1, minP = 0 } = chain;
  return { temperature, topK, topP, minP, seed: SEED, position, chain: chainOf(chain) };
}

/** The token at which the running sum in ascending id passes the row's random number. */
function walk(distribution: Map<number, number>, position: number): number {
  const target = naiveUniform(SEED, 0, position);
  let sum = 0;
  const ids = [...distribution.keys()].sort((a, b) => a - b);
  for (const id of ids) {
    sum += distribution.get(id)!;
    if (sum > target) return id;
  }
  return ids.at(-1)!;
}

function randomLogits(random: Random, spread: number, levels = 0): Float32Array {
  return Float32Array.from({ length: VOCAB }, () => {
    const logit = random.normal() * spread;
    return levels === 0 ? logit : Math.round(logit * levels) / levels;
  });
}

const CHAINS: readonly NaiveChain[] = [
  { typicalP: 0.2 },
  { typicalP: 0.9, temperature: 0.6 },
  { typicalP: 0 },
  { topNSigma: 1 },
  { topNSigma: 2.5, temperature: 3 },
  { xtcProbability: 1, xtcThreshold: 0.01 },
  { xtcProbability: 0.5, xtcThreshold: 0.002, temperature: 0.7 },
  { dynatempRange: 0.5 },
  { dynatempRange: 3, dynatempExponent: 2.5, temperature: 1.5 },
  { dynatempRange: 0.6, temperature: 0.8, topK: 30, topP: 0.8, minP: 0.02 },
  { temperatureLast: true, topP: 0.7, temperature: 2 },
  { temperatureLast: true, minP: 0.1, temperature: 2, topK: 90 },
  { typicalP: 0.7, topP: 0.9, minP: 0.05, topK: 200, topNSigma: 3, xtcProbability: 0.5, xtcThreshold: 0.05 },
  { typicalP: 0.5, topP: 0.5, temperature: 1.7 },
];

describe.each(SAMPLERS)('$name', ({ open }) => {
  beforeAll(async () => {
    executor = await open(
      tiny,
      executorOptions({ threads: 2, maxNumSequences: MAX_ROWS, maxLogitRows: MAX_ROWS, numBlocks: 1 }),
    );
  });
  afterAll(() => executor.close());

  it.each(CHAINS.map((chain) => [JSON.stringify(chain), chain] as const))('draws by %s', (_, chain) => {
    const random = new Random(5);
    const logits = Array.from({ length: MAX_ROWS }, (_, i) => randomLogits(random, 1 + (i % 4), i % 3));
    const { tokens, status } = sample(
      logits,
      logits.map((_, i) => rowOf(chain, i)),
    );
    expect([...status]).toEqual(logits.map(() => ROW_OK));
    const expected = logits.map((values, i) => {
      const excludes = naiveUniform(SEED, 0, i, XTC_DRAW) < (chain.xtcProbability ?? 0);
      return walk(naiveChain(values, chain, excludes), i);
    });
    expect([...tokens]).toEqual(expected);
  });

  it('draws by ids where all logits are equal', () => {
    const logits = new Float32Array(VOCAB).fill(1.5);
    const { tokens } = sample(
      CHAINS.map(() => logits),
      CHAINS.map(rowOf),
    );
    const expected = CHAINS.map((chain, i) => {
      const excludes = naiveUniform(SEED, 0, i, XTC_DRAW) < (chain.xtcProbability ?? 0);
      return walk(naiveChain(logits, chain, excludes), i);
    });
    expect([...tokens]).toEqual(expected);
  });

  it('takes what is left out by bans as not there', () => {
    const logits = randomLogits(new Random(8), 2);
    const banned = Array.from({ length: 400 }, (_, i) => 2 * i);
    const left = logits.map((logit, id) => (banned.includes(id) ? -Infinity : logit));
    const rows = CHAINS.map((chain, i) => ({ ...rowOf(chain, i), banned }));
    const { tokens } = sample(
      rows.map(() => logits),
      rows,
    );
    const expected = CHAINS.map((chain, i) => {
      const excludes = naiveUniform(SEED, 0, i, XTC_DRAW) < (chain.xtcProbability ?? 0);
      return walk(naiveChain(left, chain, excludes), i);
    });
    expect([...tokens]).toEqual(expected);
  });

  it.each([1, 2])('mirostat %i keeps what its state allows, and learns from the surprise', (mirostat) => {
    const random = new Random(30 + mirostat);
    const params = { mirostat, mirostatTau: 4, mirostatEta: 0.2, temperature: 0.9 };
    const chain = chainOf(params);
    let mu = 8;
    for (let position = 0; position < 40; position++) {
      const logits = randomLogits(random, 0.5 + (position % 5));
      chain[CHAIN.mirostatMu] = mu;
      const { tokens } = sample([logits], [{ temperature: 0.9, seed: SEED, position, chain, topK: 3 }]);
      const kept = naiveMirostat(logits, { version: mirostat, mu, temperature: 0.9 });
      expect(tokens[0]).toBe(walk(kept, position));
      mu -= 0.2 * (-Math.log2(kept.get(tokens[0]!)!) - 4);
      expect(chain[CHAIN.mirostatMuAfter]).toBeCloseTo(mu, 4);
      mu = chain[CHAIN.mirostatMuAfter]!;
    }
  });

  it('mirostat keeps the most probable token where nothing else is left', () => {
    const logits = randomLogits(new Random(3), 1);
    const chain = chainOf({ mirostat: 2 });
    chain[CHAIN.mirostatMu] = -50;
    const best = logits.indexOf(Math.max(...logits));
    expect(sample([logits], [{ temperature: 1, seed: SEED, chain }]).tokens[0]).toBe(best);
  });

  it('draws nothing else beside rows of any kind', () => {
    const random = new Random(12);
    const logits = Array.from({ length: 24 }, () => randomLogits(random, 2));
    const rows = logits.map((_, i) =>
      i % 3 === 0
        ? { temperature: 1, topP: 0.9, seed: SEED, position: i }
        : rowOf(CHAINS[i % CHAINS.length]!, i),
    );
    const together = sample(logits, rows);
    const alone = logits.map((values, i) => sample([values], [rows[i]!]).tokens[0]);
    expect([...together.tokens]).toEqual(alone);
  });

  it('is no matter to a greedy row', () => {
    const logits = randomLogits(new Random(2), 2);
    const best = logits.indexOf(Math.max(...logits));
    const chain = chainOf({ xtcProbability: 1, xtcThreshold: 0 });
    expect(sample([logits], [{ temperature: 0, chain }]).tokens[0]).toBe(best);
  });

  it('adds penalties behind the repetition penalty, and tells them in log-probs', () => {
    const logits = new Float32Array(VOCAB).fill(-20);
    logits.set([4, 3, 2]);
    const penalties = { tokens: Int32Array.of(0), values: Float32Array.of(-1.5) };
    // 4 / 2 - 1.5 = 0.5, and (4 - 1.5) / 2 would be 1.25.
    const row = { repetitionPenalty: 2, prompt: [0], penalties };
    expect(sample([logits], [row]).tokens[0]).toBe(1);
    logits.set([4, 0.6, 0.7]);
    expect(sample([logits], [row]).tokens[0]).toBe(2);
  });

  it('fails a row that is not finite, or has no token left', () => {
    const broken = randomLogits(new Random(6), 1);
    broken[500] = Number.NaN;
    const all = Array.from({ length: VOCAB }, (_, id) => id);
    const chain = chainOf({ typicalP: 0.5 });
    const { status } = sample(
      [broken, randomLogits(new Random(6), 1)],
      [
        { temperature: 1, chain },
        { temperature: 1, chain, banned: all },
      ],
    );
    expect([...status]).toEqual([ROW_NOT_FINITE, ROW_NO_TOKEN_LEFT]);
  });
});
