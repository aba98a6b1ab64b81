import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Executor, ExecutorOptions } from '../../engine/executors/executor.js';
import type { PackedBatch, ReturnedRows } from '../../engine/packed-call/packed-batch.js';
import { ROW_NO_TOKEN_LEFT, ROW_NOT_FINITE, ROW_OK } from '../../engine/packed-call/sampling-batch.js';
import { Random } from '../../tools/support/random.js';
import {
  makeSamplingBatch,
  makeSamplingOutput,
  type SamplingRow,
} from '../../tools/support/sampling-rows.js';
import { makeStepBatch, type StepSequence } from '../../tools/support/step-batch.js';
import { makeTinyNetwork, type TinyNetwork } from '../../tools/support/tiny-network.js';
import { describeExecutors } from '../support/executors.js';
import { naiveLogits } from '../support/naive-network.js';
import { naiveSample } from '../support/naive-sampling.js';
import { executorOptions } from '../support/native-options.js';

const VOCAB = 67;
const LONG = Array.from({ length: 37 }, (_, i) => (i * 29 + 5) % VOCAB);
const SHORT = [3, 1, 4, 1, 5];
const TOLERANCE = 2e-5;
const RUNNING = 'A begun step is running; finish() must come first.';

let tiny: TinyNetwork;
beforeAll(() => {
  tiny = makeTinyNetwork({ vocabSize: VOCAB });
});
afterAll(() => tiny.remove());

function batchOf(sequences: StepSequence[], newBlocks: number[] = []): PackedBatch {
  const { inverseFrequencies } = tiny;
  return makeStepBatch(sequences, { tokensPerBlock: 16, inverseFrequencies, newBlocks });
}

/** A prompt of 37 tokens and one of 5. */
function prompts(logits: StepSequence['logits'] = 'last'): PackedBatch {
  return batchOf(
    [
      { tokens: LONG, cached: 0, blocks: [4, 1, 2], logits },
      { tokens: SHORT, cached: 0, blocks: [3], logits },
    ],
    [1, 2, 3, 4],
  );
}

const rowsOf = (all: Float32Array, first: number, count: number) =>
  all.slice(first * VOCAB, (first + count) * VOCAB);

function expectClose(found: Float32Array, expected: Float32Array, tolerance: number): void {
  expect(found.length).toBe(expected.length);
  const greatest = expected.reduce((most, value, i) => Math.max(most, Math.abs(value - found[i]!)), 0);
  expect(greatest).toBeLessThanOrEqual(tolerance);
}

describeExecutors((on) => {
  let executor: Executor;
  const open = (changes: Partial<ExecutorOptions> = {}) =>
    on.open(tiny, executorOptions({ numBlocks: 8, maxNumTokens: 96, maxLogitRows: 64, ...changes }));
  const tolerance = on.keepsBits ? 0 : TOLERANCE;
  beforeAll(async () => {
    executor = await open();
  });
  afterAll(() => executor.close());

  describe('a step', () => {
    const drawn: SamplingRow[] = [
      { numTopLogProbs: 3 },
      { temperature: 0.9, topP: 0.8, seed: 5n, position: 37, numTopLogProbs: 0 },
    ];

    it('gives what forward and sample give in two, and begin and finish', () => {
      const [fused, split, begun] = [0, 1, 2].map(() => makeSamplingOutput(2, 3));
      executor.step(prompts(), makeSamplingBatch(drawn), fused!);
      const logits = executor.forward(prompts());
      const before = logits.slice();
      executor.sample(makeSamplingBatch(drawn), split!);
      expect(logits).toEqual(before);
      executor.begin(prompts(), makeSamplingBatch(drawn), begun!);
      executor.finish();
      for (const output of [split!, begun!]) {
        expect([...output.tokens]).toEqual([...fused!.tokens]);
        expect([...output.topTokens]).toEqual([...fused!.topTokens]);
        expectClose(output.logProbs, fused!.logProbs, TOLERANCE);
        expectClose(output.topLogProbs, fused!.topLogProbs, TOLERANCE);
      }
    });

    it('draws what a full sort of its logits gives', () => {
      const filters: SamplingRow[] = [
        {},
        { temperature: 1 },
        { temperature: 0.6, topK: 5 },
        { temperature: 1.4, topP: 0.7 },
        { temperature: 1, minP: 0.1 },
        { temperature: 1.2, topK: 20, topP: 0.9, minP: 0.02 },
        { temperature: 1, allowed: [1, 5, 60] },
        { temperature: 1, topK: 4, repetitionPenalty: 1.5, prompt: LONG, generated: [1, 1], banned: [7] },
      ];
      const rows = filters.flatMap((filter) =>
        [1n, 2n ** 40n].map((seed) => ({ ...filter, seed, position: Number(seed % 100n), sequenceIndex: 1 })),
      );
      const sequence = { tokens: SHORT, cached: 0, blocks: [3] };
      const batch = batchOf(rows.map(() => sequence));
      const logits = executor.forward(batch).slice();
      const output = makeSamplingOutput(rows.length);
      executor.step(batch, makeSamplingBatch(rows, VOCAB), output);
      expect([...output.tokens]).toEqual(
        rows.map((row, i) => naiveSample(logits.subarray(i * VOCAB, (i + 1) * VOCAB), row)),
      );
    });

    it('draws from what is written into the logits', () => {
      const logits = executor.forward(prompts());
      logits.fill(-3);
      logits[11] = 2;
      logits[VOCAB + 60] = 2;
      const output = makeSamplingOutput(2);
      executor.sample(makeSamplingBatch([{}, { temperature: 0.5, topK: 1 }]), output);
      expect([...output.tokens]).toEqual([11, 60]);
    });

    it('of no rows gives none', () => {
      const output = makeSamplingOutput(0);
      output.topStart[0] = 9;
      executor.step(prompts('none'), makeSamplingBatch([]), output);
      expect(output.topStart[0]).toBe(0);
      expect(executor.forward(prompts('none')).length).toBe(0);
    });

    it('tells rows that are not finite, and rows with nothing left', () => {
      const all = Array.from({ length: VOCAB }, (_, token) => token);
      const output = makeSamplingOutput(2);
      executor.step(prompts(), makeSamplingBatch([{ banned: all }, {}]), output);
      expect([output.tokens[0], ...output.status]).toEqual([-1, ROW_NO_TOKEN_LEFT, ROW_OK]);
      const alone = output.tokens[1];
      // A row of frequencies of its own that is broken.
      const half = tiny.inverseFrequencies.length;
      const ropeFrequencies = new Float32Array(2 * half).fill(Number.NaN);
      ropeFrequencies.set(tiny.inverseFrequencies, half);
      const broken = {
        ...prompts(),
        ropeFrequencies,
        ropeScales: Float32Array.of(1, 1),
        ropeRows: Int32Array.of(0, 1),
      };
      executor.step(broken, makeSamplingBatch([{ temperature: 1 }, {}]), output);
      expect([...output.status]).toEqual([ROW_NOT_FINITE, ROW_OK]);
      expect([...output.tokens]).toEqual([-1, alone]);
    });
  });

  describe('RoPE', () => {
    it('turns each sequence by its own frequencies and scale', () => {
      const half = tiny.inverseFrequencies.length;
      const inverseFrequencies = new Float32Array(2 * half);
      const other = tiny.inverseFrequencies.map((frequency) => frequency / 3);
      inverseFrequencies.set(tiny.inverseFrequencies);
      inverseFrequencies.set(other, half);
      const sequences = [0, 1].map((ropeRow) => ({
        tokens: LONG,
        cached: 0,
        blocks: [ropeRow * 3, 1 + ropeRow, 5 + ropeRow],
        ropeRow,
      }));
      const batch = makeStepBatch(sequences, { tokensPerBlock: 16, inverseFrequencies });
      const logits = executor.forward({ ...batch, ropeScales: Float32Array.of(1, 1.5) }).slice();
      for (const [row, [frequencies, ropeScale]] of (
        [
          [tiny.inverseFrequencies, 1],
          [other, 1.5],
        ] as const
      ).entries()) {
        const options = { kvDtype: 'f32', inverseFrequencies: frequencies, ropeScale } as const;
        const expected = naiveLogits(tiny.plan, tiny.weights, LONG, options).at(-1)!;
        expectClose(rowsOf(logits, row, 1), Float32Array.from(expected), TOLERANCE);
      }
    });
  });

  describe('returned rows', () => {
    const wanted = (of: ReturnedRows['of'], first: number, count: number): ReturnedRows => ({
      of,
      first,
      count,
      logits: new Float32Array(count * VOCAB).fill(Number.NaN),
      logProbs: null,
    });

    it.each([2, 64])('are the rows of forward, with room for %i rows of logits', async (maxLogitRows) => {
      const all = executor.forward(prompts('all')).slice();
      const narrow = await open({ maxLogitRows });
      const context = wanted('tokens', 0, 37);
      const middle = wanted('tokens', 38, 3);
      const sampled = wanted('logitRows', 1, 1);
      const rows = [{ temperature: 0.8, seed: 5n, position: 37 }, { banned: [7] }];
      const [output, plain] = [makeSamplingOutput(2), makeSamplingOutput(2)];
      narrow.step(
        { ...prompts(), returnedRows: [context, sampled, middle] },
        makeSamplingBatch(rows),
        output,
      );
      expectClose(context.logits!, rowsOf(all, 0, 37), tolerance);
      expectClose(middle.logits!, rowsOf(all, 38, 3), tolerance);
      expectClose(sampled.logits!, rowsOf(all, 41, 1), tolerance);
      narrow.step(prompts(), makeSamplingBatch(rows), plain);
      expect([...output.tokens]).toEqual([...plain.tokens]);
      narrow.close();
    });

    it('have log-probs and the most probable tokens', () => {
      const all = executor.forward(prompts('all')).slice();
      const logProbs = {
        tokens: Int32Array.from([...LONG.slice(1), -1]),
        logProbs: new Float32Array(37),
        numTop: 3,
        topTokens: new Int32Array(37 * 3),
        topLogProbs: new Float32Array(37 * 3),
      };
      const returned = { ...wanted('tokens', 0, 37), logits: null, logProbs };
      executor.forward({ ...prompts(), returnedRows: [returned] });
      for (let row = 0; row < 37; row++) {
        const logits = Array.from(rowsOf(all, row, 1));
        const norm = Math.log(logits.reduce((sum, x) => sum + Math.exp(x), 0));
        const best = [...logits.keys()].sort((a, b) => logits[b]! - logits[a]! || a - b).slice(0, 3);
        expect([...logProbs.topTokens.subarray(row * 3, (row + 1) * 3)]).toEqual(best);
        expect(logProbs.topLogProbs[row * 3]).toBeCloseTo(logits[best[0]!]! - norm, 4);
        const token = logProbs.tokens[row]!;
        if (token < 0) expect(logProbs.logProbs[row]).toBeNaN();
        else expect(logProbs.logProbs[row]).toBeCloseTo(logits[token]! - norm, 4);
      }
    });
  });

  describe('blocks', () => {
    const tokens = Array.from({ length: 30 }, (_, i) => (i * 7) % VOCAB);
    const context = () => batchOf([{ tokens: tokens.slice(0, 29), cached: 0, blocks: [3, 7] }]);
    const next = (...blocks: number[]) => batchOf([{ tokens, cached: 29, blocks }]);

    it('are copied whole', () => {
      executor.forward(context());
      executor.copyBlocks(Int32Array.of(3, 7), Int32Array.of(5, 1));
      const original = executor.forward(next(3, 7)).slice();
      expectClose(executor.forward(next(5, 1)), original, tolerance);
      executor.copyBlocks(new Int32Array(0), new Int32Array(0));
    });

    it('come back from the secondary pool, and change places in the order of the copies', async () => {
      const swapping = await open({ numSecondaryBlocks: 2 });
      swapping.forward(context());
      swapping.copyBlocks(Int32Array.of(3, 7), Int32Array.of(8, 9));
      const expected = swapping.forward(next(3, 7)).slice();
      swapping.forward(batchOf([{ tokens: [1], cached: 0, blocks: [3] }], [3, 7]));
      // 8 goes to 5, its place is taken by block 0, and 9 goes where that was.
      swapping.copyBlocks(Int32Array.of(8, 0, 9), Int32Array.of(5, 8, 0));
      expectClose(swapping.forward(next(5, 0)), expected, tolerance);
      // Each copy sees what the one before it wrote.
      swapping.copyBlocks(Int32Array.of(5, 2, 0), Int32Array.of(2, 4, 6));
      expectClose(swapping.forward(next(4, 6)), expected, tolerance);
      const { kvCacheBytes, secondaryKvCacheBytes } = swapping.memory();
      expect(kvCacheBytes).toBe(4 * secondaryKvCacheBytes);
      expect(() => swapping.copyBlocks(Int32Array.of(10), Int32Array.of(0))).toThrow('source[0] is 10');
      swapping.close();
    });

    it('that hold what is not finite are told, and are clean once they are handed out again', () => {
      const expected = executor.forward(batchOf([{ tokens: SHORT, cached: 0, blocks: [4] }], [4])).slice();
      const broken = tiny.inverseFrequencies.map((value, i) => (i === 1 ? Number.NaN : value));
      executor.forward({ ...context(), ropeFrequencies: broken });
      const finite = (...blocks: number[]) => executor.areFinite(Int32Array.from(blocks));
      expect([finite(), finite(4), finite(3), finite(7), finite(4, 7)]).toEqual([
        true,
        true,
        false,
        false,
        false,
      ]);
      expect(() => finite(8)).toThrow('blocks[0] is 8');
      const again = executor.forward(batchOf([{ tokens: SHORT, cached: 0, blocks: [7] }], [7]));
      expectClose(again, expected, tolerance);
      expect(finite(7)).toBe(true);
    });
  });

  describe('wrong use is refused', () => {
    const rows = () => makeSamplingBatch([{}, {}]);
    const output = () => makeSamplingOutput(2);

    it('between begin and finish, of every call but memory', () => {
      const drawn = output();
      executor.begin(prompts(), rows(), drawn);
      expect(() => executor.begin(prompts(), rows(), output())).toThrow(RUNNING);
      expect(() => executor.step(prompts(), rows(), output())).toThrow(RUNNING);
      expect(() => executor.forward(prompts())).toThrow(RUNNING);
      expect(() => executor.sample(rows(), output())).toThrow(RUNNING);
      expect(() => executor.copyBlocks(Int32Array.of(0), Int32Array.of(1))).toThrow(RUNNING);
      expect(() => executor.close()).toThrow('The executor cannot be closed while a begun step is running');
      expect(executor.memory().weightBytes).toBeGreaterThan(0);
      executor.finish();
      const expected = output();
      executor.step(prompts(), rows(), expected);
      expect([...drawn.tokens]).toEqual([...expected.tokens]);
    });

    it('of finish where nothing was begun, and of a batch that is not valid: nothing is begun then', async () => {
      const executor = await open();
      const nothing = 'No step has been begun; begin() must come before finish().';
      expect(() => executor.finish()).toThrow(nothing);
      const foreign = { ...prompts(), tokenIds: new Int32Array(42).fill(4711) };
      expect(() => executor.begin(foreign, rows(), output())).toThrow('4711');
      expect(() => executor.begin(prompts(), rows(), makeSamplingOutput(1))).toThrow('tokens has 1 entries');
      expect(() => executor.finish()).toThrow(nothing);
      expect(() => executor.sample(rows(), output())).toThrow('the last forward made 0 rows of logits');
      executor.close();
    });

    it('once it is closed, but for closing it again', async () => {
      const closed = await open();
      closed.close();
      closed.close();
      const sentence = 'The executor is closed.';
      expect(() => closed.forward(prompts())).toThrow(sentence);
      expect(() => closed.begin(prompts(), rows(), output())).toThrow(sentence);
      expect(() => closed.finish()).toThrow(sentence);
      expect(() => closed.sample(rows(), output())).toThrow(sentence);
      expect(() => closed.areFinite(Int32Array.of(0))).toThrow(sentence);
      expect(() => closed.memory()).toThrow(sentence);
    });

    it.each<[Partial<ExecutorOptions>, string]>([
      [{ tokensPerBlock: 24 }, 'tokensPerBlock must be a power of two, but it is 24.'],
      [{ maxNumTokens: 0 }, 'maxNumTokens must be between 1 and 1048575, but it is 0.'],
      [
        { maxAttentionWindow: 8, sinkTokenLength: 8 },
        'sinkTokenLength must be between 0 and 7, but it is 8.',
      ],
    ])('of options that make no sense: %o', async (options, sentence) => {
      await expect(open(options)).rejects.toThrow(sentence);
    });
  });

  it('has a name, its options, and sizes', () => {
    expect(executor.vocabSize).toBe(VOCAB);
    expect(executor.promptRowWidth).toBe(tiny.shape.hiddenSize);
    expect(executor.options.numBlocks).toBe(8);
    expect(executor.instructionSet).not.toBe('');
    const { kvCacheBytes, secondaryKvCacheBytes, workspaceBytes } = executor.memory();
    // 2 layers x 8 blocks x 16 tokens x 2 heads x 16 x (K and V) x 4 bytes
    expect(kvCacheBytes).toBeGreaterThanOrEqual(2 * 8 * 16 * 2 * 16 * 2 * 4);
    expect(secondaryKvCacheBytes).toBe(0);
    expect(workspaceBytes).toBeGreaterThan(0);
  });

  it('is as right after many steps of many shapes', () => {
    const random = new Random(5);
    const expected = executor.forward(prompts()).slice();
    for (let i = 0; i < 20; i++) {
      const length = 1 + random.below(40);
      const tokens = Array.from({ length }, () => random.below(VOCAB));
      executor.forward(batchOf([{ tokens, cached: 0, blocks: [0, 5, 6] }], [0, 5, 6]));
    }
    expectClose(executor.forward(prompts()), expected, tolerance);
  });
});
