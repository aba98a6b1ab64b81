import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { InstructionSet } from '../../../../callbacks/gpt-manager-options.js';
import type { WeightPrecision } from '../../../../engine/directory/engine-directory.js';
import { NativeExecutor } from '../../../../engine/executors/native/native-executor.js';
import type { PackedBatch, ReturnedRows } from '../../../../engine/packed-call/packed-batch.js';
import { makeSamplingBatch, makeSamplingOutput } from '../../../../tools/support/sampling-rows.js';
import { makeStepBatch, type StepSequence } from '../../../../tools/support/step-batch.js';
import { makeTinyNetwork, type TinyNetwork } from '../../../../tools/support/tiny-network.js';
import { executorOptions, instructionSets } from '../../../support/native-options.js';

const VOCAB = 67;
const LONG = Array.from({ length: 37 }, (_, i) => (i * 29 + 5) % VOCAB);
const SHORT = [3, 1, 4, 1, 5];

let networks: Record<WeightPrecision, TinyNetwork>;
beforeAll(() => {
  const make = (precision: WeightPrecision) => makeTinyNetwork({ vocabSize: VOCAB, precision });
  networks = { f32: make('f32'), bf16: make('bf16'), int8: make('int8'), int4: make('int4') };
});
afterAll(() => {
  for (const network of Object.values(networks)) network.remove();
});

interface Setup {
  precision: WeightPrecision;
  instructionSet: InstructionSet;
  threads: number;
  maxLogitRows: number;
}

function open({ precision, ...options }: Setup): NativeExecutor {
  const kvDtype = precision === 'f32' ? 'f32' : 'bf16';
  return new NativeExecutor(networks[precision], executorOptions({ ...options, kvDtype }));
}

function batchOf(logits: StepSequence['logits'], returnedRows?: ReturnedRows[]): PackedBatch {
  const sequences: StepSequence[] = [
    { tokens: LONG, cached: 0, blocks: [4, 1, 2], logits: logits ?? 'last' },
    { tokens: SHORT, cached: 0, blocks: [3], logits: logits ?? 'last' },
  ];
  const { inverseFrequencies } = networks.f32;
  const batch = makeStepBatch(sequences, { tokensPerBlock: 16, inverseFrequencies, newBlocks: [1, 2, 3, 4] });
  return returnedRows ? { ...batch, returnedRows } : batch;
}

const wanted = (of: ReturnedRows['of'], first: number, count: number): ReturnedRows => ({
  of,
  first,
  count,
  logits: new Float32Array(count * VOCAB).fill(Number.NaN),
  logProbs: null,
});

/** All rows of both sequences in one piece, as forward has always given them. */
function allRows(setup: Setup): Float32Array {
  const executor = open({ ...setup, maxLogitRows: 64 });
  const rows = executor.forward(batchOf('all')).slice();
  executor.close();
  return rows;
}

const rowsOf = (all: Float32Array, first: number, count: number) =>
  all.slice(first * VOCAB, (first + count) * VOCAB);

const sampling = () => makeSamplingBatch([{ temperature: 0.8, seed: 5n, position: 37 }, { banned: [7] }]);

describe.each(instructionSets)('returned rows on %s', (instructionSet) => {
  describe.each<WeightPrecision>(['f32', 'bf16', 'int8', 'int4'])('%s', (precision) => {
    it.each([
      [2, 1],
      [3, 2],
      [64, 8],
    ])('are the bits of forward with room for %i rows of logits and %i threads', (maxLogitRows, threads) => {
      const setup = { precision, instructionSet, threads, maxLogitRows };
      const all = allRows({ ...setup, threads: 1 });
      const context = wanted('tokens', 0, 37);
      const middle = wanted('tokens', 38, 3);
      const sampled = wanted('logitRows', 1, 1);
      const executor = open(setup);
      const output = makeSamplingOutput(2);
      executor.step(batchOf('last', [context, sampled, middle]), sampling(), output);
      executor.close();
      expect(context.logits).toStrictEqual(rowsOf(all, 0, 37));
      expect(middle.logits).toStrictEqual(rowsOf(all, 38, 3));
      expect(sampled.logits).toStrictEqual(rowsOf(all, 41, 1));

      const without = open(setup);
      const plain = makeSamplingOutput(2);
      without.step(batchOf('last'), sampling(), plain);
      without.close();
      expect(output).toStrictEqual(plain);
    });
  });

  it('leave the view of forward as it was, and follow chunks', () => {
    const setup = { precision: 'f32' as const, instructionSet, threads: 2, maxLogitRows: 2 };
    const all = allRows(setup);
    const executor = open(setup);
    const { inverseFrequencies } = networks.f32;
    const first = wanted('tokens', 0, 20);
    const second = wanted('tokens', 0, 17);
    const chunk = (cached: number, end: number, rows: ReturnedRows, logits: 'last' | 'none') => ({
      ...makeStepBatch([{ tokens: LONG.slice(0, end), cached, blocks: [4, 1, 2], logits }], {
        tokensPerBlock: 16,
        inverseFrequencies,
        newBlocks: cached === 0 ? [1, 2, 4] : [],
      }),
      returnedRows: [rows],
    });
    expect(executor.forward(chunk(0, 20, first, 'none')).length).toBe(0);
    expect(executor.forward(chunk(20, 37, second, 'last')).slice()).toStrictEqual(rowsOf(all, 36, 1));
    executor.close();
    expect(first.logits).toStrictEqual(rowsOf(all, 0, 20));
    expect(second.logits).toStrictEqual(rowsOf(all, 20, 17));
  });

  it('give log-probs and the most probable tokens, equal to those of sampling', () => {
    const setup = { precision: 'f32' as const, instructionSet, threads: 2, maxLogitRows: 3 };
    const all = allRows(setup);
    const numTop = 3;
    const logProbs = {
      tokens: Int32Array.from([...LONG.slice(1), 0]),
      logProbs: new Float32Array(37),
      numTop,
      topTokens: new Int32Array(37 * numTop),
      topLogProbs: new Float32Array(37 * numTop),
    };
    const executor = open(setup);
    const returned = { ...wanted('tokens', 0, 37), logits: null, logProbs };
    const rows = makeSamplingBatch([{ numTopLogProbs: numTop }, {}]);
    const output = makeSamplingOutput(2, numTop);
    executor.step(batchOf('last', [returned]), rows, output);
    executor.close();
    for (let row = 0; row < 37; row++) {
      const logits = Array.from(rowsOf(all, row, 1));
      const maximum = Math.max(...logits);
      const norm = maximum + Math.log(logits.reduce((sum, x) => sum + Math.exp(x - maximum), 0));
      expect(logProbs.logProbs[row]).toBeCloseTo(logits[logProbs.tokens[row]!]! - norm, 5);
      const best = [...logits.keys()].sort((a, b) => logits[b]! - logits[a]! || a - b).slice(0, numTop);
      expect([...logProbs.topTokens.subarray(row * numTop, (row + 1) * numTop)]).toEqual(best);
    }
    expect(logProbs.topTokens.slice(36 * numTop)).toStrictEqual(output.topTokens.slice(0, numTop));
    expect(logProbs.topLogProbs.slice(36 * numTop)).toStrictEqual(output.topLogProbs.slice(0, numTop));
  });
});

describe('rows that are not finite', () => {
  it('come back as they are, with log-probs that are NaN', () => {
    const executor = open({
      precision: 'f32',
      instructionSet: instructionSets[0]!,
      threads: 1,
      maxLogitRows: 4,
    });
    const logProbs = {
      tokens: Int32Array.of(1, 2),
      logProbs: new Float32Array(2),
      numTop: 1,
      topTokens: new Int32Array(2),
      topLogProbs: new Float32Array(2),
    };
    const returned = { ...wanted('tokens', 0, 2), logProbs };
    const batch = batchOf('last', [returned]);
    const broken = { ...batch, ropeFrequencies: new Float32Array(8).fill(Number.NaN) };
    executor.forward(broken);
    executor.close();
    expect(returned.logits!.every(Number.isNaN)).toBe(true);
    expect([...logProbs.logProbs, ...logProbs.topLogProbs].every(Number.isNaN)).toBe(true);
    expect([...logProbs.topTokens]).toEqual([-1, -1]);
  });
});

describe('returned rows that are wrong', () => {
  const none = { tokens: new Int32Array(2), logProbs: new Float32Array(2), numTop: 0 };
  const noTop = { topTokens: new Int32Array(0), topLogProbs: new Float32Array(0) };
  it.each<[string, Partial<ReturnedRows>, RegExp]>([
    ['too many tokens', { first: 41 }, /returnedRows asks for rows 41 to 43 of 42 tokens/],
    ['too many rows of logits', { of: 'logitRows', first: 1 }, /rows 1 to 3 of 2 rows of logits/],
    ['below the first', { first: -1 }, /asks for rows -1 to 1/],
    ['none', { count: 0 }, /asks for rows 0 to 0/],
    ['too little memory', { logits: new Float32Array(133) }, /logits of returnedRows has 133 .* 134/],
    ['of nothing known', { of: 'rows' as 'tokens' }, /of is "rows"; tokens or logitRows is expected/],
    [
      'a token beyond the vocabulary',
      { logProbs: { ...none, ...noTop, tokens: Int32Array.of(0, 67) } },
      /tokens of returnedRows\[1\] is 67/,
    ],
    [
      'no room for the most probable tokens',
      { logProbs: { ...none, ...noTop, numTop: 2 } },
      /topTokens of returnedRows has 0 entries, but 4 are needed/,
    ],
  ])('%s', (_, changes, message) => {
    const executor = open({ precision: 'f32', instructionSet: 'scalar', threads: 1, maxLogitRows: 4 });
    const returned = { ...wanted('tokens', 0, 2), ...changes };
    expect(() => executor.forward(batchOf('last', [returned]))).toThrow(message);
    executor.close();
  });
});
