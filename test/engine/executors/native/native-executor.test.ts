import { afterAll, describe, expect, it } from 'vitest';
import { NativeExecutor } from '../../../../engine/executors/native/native-executor.js';
import type { Activation } from '../../../../network/plan.js';
import { Random } from '../../../../tools/support/random.js';
import { makeSamplingBatch, makeSamplingOutput } from '../../../../tools/support/sampling-rows.js';
import { makeStepBatch } from '../../../../tools/support/step-batch.js';
import { type TinyNetwork, TinyNetworks, type TinyShape } from '../../../../tools/support/tiny-network.js';
import { expectedLogits } from '../../../support/expected-logits.js';
import { greatestError, naiveLogits } from '../../../support/naive-network.js';
import { executorOptions, instructionSets, multipliesPairs } from '../../../support/native-options.js';
import { PagedSequences } from '../../../support/paged-sequences.js';

const networks = new TinyNetworks();
afterAll(() => networks.remove());

const made = new Map<string, TinyNetwork>();

/** A network for all instruction sets. */
function sharedNetwork(changes: Partial<TinyShape> = {}): TinyNetwork {
  const key = JSON.stringify(changes);
  const network = made.get(key) ?? networks.make(changes);
  made.set(key, network);
  return network;
}

/** Greatest difference of any logit from the naive network's, over context and generation rows in random blocks. */
function errorOf(tiny: TinyNetwork, options: Parameters<typeof executorOptions>[0]): number {
  const random = new Random(7);
  const executor = new NativeExecutor(tiny, executorOptions(options));
  const tokens = [37, 9, 70, 1, 18].map((length) => random.tokens(length, tiny.shape.vocabSize));
  const sequences = new PagedSequences(
    executor,
    tiny,
    tokens,
    random.permutation(executor.options.numBlocks),
  );
  sequences.runAll([30, 9, 65, 1, 2]);
  executor.close();
  let greatest = 0;
  for (const [s, ofSequence] of tokens.entries()) {
    const expected = expectedLogits(tiny, ofSequence, {
      kvDtype: executor.options.kvDtype,
      roundsInputs: multipliesPairs(executor.instructionSet) && tiny.shape.precision === 'bf16',
      roundsAttention: multipliesPairs(executor.instructionSet) && executor.options.kvDtype === 'bf16',
    });
    greatest = Math.max(greatest, greatestError(sequences.logits[s]!, expected));
  }
  return greatest;
}

const UNEVEN = [
  { ownHeads: [{ numKvHeads: 1 }] },
  { ownHeads: [{ numHeads: 2, numKvHeads: 1 }, { numHeads: 6 }], numLayers: 3, gateless: true },
  { ownHeads: [{}, { headDim: 24 }, { numKvHeads: 4, headDim: 8 }], numLayers: 4 },
  { ownHeads: [{ headDim: 8 }, { numKvHeads: 1, headDim: 32 }], varied: true },
  { readingLayers: 2, numLayers: 4, gateless: true },
  { layerInputs: true, readingLayers: 1, numLayers: 3, varied: true },
  {
    ownHeads: [{ headDim: 24, numKvHeads: 1 }, { headDim: 8 }],
    readingLayers: 1,
    numLayers: 3,
    varied: true,
  },
];

describe.each(instructionSets)('a network on %s', (instructionSet) => {
  it.each([8, 16, 32, 64])('is the naive network in f32, %i tokens per block', (tokensPerBlock) => {
    expect(errorOf(sharedNetwork(), { instructionSet, tokensPerBlock })).toBeLessThan(2e-5);
  });

  it('is the naive network with bf16 weights and cache', () => {
    const tiny = sharedNetwork({ precision: 'bf16' });
    // f32 and f64 may round a value that lies between two of bf16 to different ones.
    const ofRounding = multipliesPairs(instructionSet) ? 4e-2 : 2e-2;
    expect(errorOf(tiny, { instructionSet, kvDtype: 'bf16' })).toBeLessThan(ofRounding);
    const exact = errorOf(tiny, { instructionSet, kvDtype: 'f32' });
    expect(exact).toBeLessThan(multipliesPairs(instructionSet) ? ofRounding : 2e-5);
  });

  it('is the naive network with a cache in int8', () => {
    // A value between two quants may be rounded to different ones, as with bf16.
    expect(errorOf(sharedNetwork(), { instructionSet, kvDtype: 'int8' })).toBeLessThan(2e-2);
    for (const tokensPerBlock of [8, 32]) {
      const odd = sharedNetwork({ headDim: 10 });
      expect(errorOf(odd, { instructionSet, kvDtype: 'int8', tokensPerBlock })).toBeLessThan(2e-2);
    }
  });

  it.each<Activation>(['silu', 'gelu', 'geluTanh', 'reluSquared', 'quickGelu'])(
    'takes biases, and %s',
    (activation) => {
      expect(errorOf(sharedNetwork({ bias: true, activation }), { instructionSet })).toBeLessThan(2e-5);
    },
  );

  it.each([
    { numHeads: 1, numKvHeads: 1, headDim: 64, hiddenSize: 64 },
    { numHeads: 9, numKvHeads: 3, headDim: 8, hiddenSize: 72 },
    { numHeads: 6, numKvHeads: 1, headDim: 24, hiddenSize: 41, intermediateSize: 67, vocabSize: 259 },
    { numHeads: 8, numKvHeads: 8, headDim: 16, hiddenSize: 128, numLayers: 1 },
  ])('takes the shape %o', (shape) => {
    expect(errorOf(sharedNetwork(shape), { instructionSet })).toBeLessThan(2e-5);
  });

  it.each(UNEVEN)('takes layers with heads of their own, or that keep nothing: %o', (shape) => {
    const tiny = sharedNetwork(shape);
    expect(errorOf(tiny, { instructionSet, tokensPerBlock: 8 })).toBeLessThan(2e-5);
  });

  it.each([false, true])('keeps states of sequences, with heads in tiles: %s', (tiled) => {
    const network = sharedNetwork({ stateful: true, tiled });
    expect(errorOf(network, { instructionSet, numStateSlots: 5 })).toBeLessThan(5e-5);
  });

  it.each([true, 'alone'] as const)('scans, beside attention or without any: %s', (scanned) => {
    const network = sharedNetwork({ scanned });
    expect(errorOf(network, { instructionSet, numStateSlots: 5 })).toBeLessThan(5e-5);
  });
});

describe('a long sequence', () => {
  it('attends over several splits of the cache', () => {
    const tiny = networks.make({
      numLayers: 1,
      hiddenSize: 16,
      intermediateSize: 16,
      numHeads: 2,
      numKvHeads: 1,
    });
    const random = new Random(3);
    const tokens = random.tokens(1300, tiny.shape.vocabSize);
    const expected = naiveLogits(tiny.plan, tiny.weights, tokens, {
      kvDtype: 'f32',
      inverseFrequencies: tiny.inverseFrequencies,
      ropeScale: 1,
    });
    const executor = new NativeExecutor(
      tiny,
      executorOptions({ threads: 3, numBlocks: 90, maxNumTokens: 512, maxLogitRows: 512 }),
    );
    const sequences = new PagedSequences(executor, tiny, [tokens], random.permutation(90));
    for (const upTo of [500, 900, 1298, 1299, 1300]) sequences.step([{ sequence: 0, upTo }]);
    executor.close();
    for (const position of [0, 499, 511, 512, 513, 1023, 1024, 1297, 1298, 1299]) {
      const error = expected[position]!.map((logit, i) =>
        Math.abs(logit - sequences.logits[0]![position]![i]!),
      );
      expect(Math.max(...error)).toBeLessThan(2e-5);
    }
  });
});

describe('rope rows', () => {
  it('rotate each sequence by its own frequencies and scale', () => {
    const tiny = networks.make();
    const random = new Random(5);
    const tokens = random.tokens(20, tiny.shape.vocabSize);
    const other = tiny.inverseFrequencies.map((frequency) => frequency / 3);
    const half = tiny.inverseFrequencies.length;
    const executor = new NativeExecutor(tiny, executorOptions());
    const sequences = [0, 1].map((ropeRow) => ({
      tokens,
      cached: 0,
      blocks: [2 * ropeRow, 2 * ropeRow + 1],
      logits: 'last' as const,
      ropeRow,
    }));
    const inverseFrequencies = new Float32Array(2 * half);
    inverseFrequencies.set(tiny.inverseFrequencies);
    inverseFrequencies.set(other, half);
    const batch = {
      ...makeStepBatch(sequences, { tokensPerBlock: 16, inverseFrequencies }),
      ropeScales: Float32Array.of(1, 1.5),
    };
    const logits = executor.forward(batch).slice();
    executor.close();
    for (const [row, [frequencies, ropeScale]] of (
      [
        [tiny.inverseFrequencies, 1],
        [other, 1.5],
      ] as const
    ).entries()) {
      const expected = naiveLogits(tiny.plan, tiny.weights, tokens, {
        kvDtype: 'f32',
        inverseFrequencies: frequencies,
        ropeScale,
      });
      for (const [i, logit] of expected[19]!.entries()) {
        expect(logits[row * tiny.shape.vocabSize + i]).toBeCloseTo(logit, 4);
      }
    }
  });
});

describe('copyBlocks and step', () => {
  it.each(['f32', 'int8'] as const)('gives a sequence on copied blocks the same logits, %s', (kvDtype) => {
    const tiny = networks.make({ seed: 9 });
    const random = new Random(11);
    const tokens = random.tokens(30, tiny.shape.vocabSize);
    const options = { tokensPerBlock: 16, inverseFrequencies: tiny.inverseFrequencies };
    const executor = new NativeExecutor(tiny, executorOptions({ kvDtype }));
    executor.forward(makeStepBatch([{ tokens: tokens.slice(0, 29), cached: 0, blocks: [3, 7] }], options));
    executor.copyBlocks(Int32Array.of(3, 7), Int32Array.of(20, 1));
    const both = makeStepBatch(
      [
        { tokens, cached: 29, blocks: [3, 7] },
        { tokens, cached: 29, blocks: [20, 1] },
      ],
      options,
    );
    const logits = executor.forward(both);
    const { vocabSize } = tiny.shape;
    expect(logits.slice(vocabSize)).toEqual(logits.slice(0, vocabSize));
    executor.close();
  });

  it.each([
    ['f32', 2 * 16 * 4],
    ['int8', 2 * (16 + 4)],
  ] as const)(
    'brings a sequence back from the secondary pool, and exchanges blocks in the order of the copies, %s',
    (kvDtype, bytesPerHead) => {
      const tiny = networks.make({ seed: 9 });
      const random = new Random(11);
      const tokens = random.tokens(30, tiny.shape.vocabSize);
      const options = { tokensPerBlock: 16, inverseFrequencies: tiny.inverseFrequencies };
      const executor = new NativeExecutor(
        tiny,
        executorOptions({ numBlocks: 30, numSecondaryBlocks: 2, kvDtype }),
      );
      executor.forward(makeStepBatch([{ tokens: tokens.slice(0, 29), cached: 0, blocks: [3, 7] }], options));
      executor.copyBlocks(Int32Array.of(3, 7), Int32Array.of(30, 31));
      const next = (blocks: number[], newBlocks: number[] = []) =>
        makeStepBatch([{ tokens, cached: 29, blocks }], { ...options, newBlocks });
      const expected = executor.forward(next([3, 7])).slice();
      executor.forward(
        makeStepBatch([{ tokens: [1], cached: 0, blocks: [3] }], { ...options, newBlocks: [3, 7] }),
      );
      // 30 goes to 5, its place is taken by block 0, and 31 goes where that was.
      executor.copyBlocks(Int32Array.of(30, 0, 31), Int32Array.of(5, 30, 0));
      expect(executor.forward(next([5, 0]))).toEqual(expected);
      const { kvCacheBytes, secondaryKvCacheBytes } = executor.memory();
      expect(
        [kvCacheBytes, secondaryKvCacheBytes].map((bytes) => bytes / (2 * 2 * 16 * bytesPerHead)),
      ).toEqual([30, 2]);
      expect(() => executor.copyBlocks(Int32Array.of(32), Int32Array.of(0))).toThrow('source[0] is 32');
      executor.close();
    },
  );

  it.each(['f32', 'bf16', 'int8'] as const)('tells blocks that hold what is not finite (%s)', (kvDtype) => {
    const tiny = networks.make({ seed: 9 });
    const executor = new NativeExecutor(tiny, executorOptions({ numBlocks: 8, kvDtype }));
    const { inverseFrequencies } = tiny;
    const broken = inverseFrequencies.map((value, index) => (index === 1 ? Number.NaN : value));
    const write = (blocks: number[], frequencies: Float32Array) =>
      executor.forward(
        makeStepBatch([{ tokens: new Random(1).tokens(20, 100), cached: 0, blocks }], {
          tokensPerBlock: 16,
          inverseFrequencies: frequencies,
          newBlocks: blocks,
        }),
      );
    write([3, 1], inverseFrequencies);
    write([7, 4], broken);
    const finite = (...blocks: number[]) => executor.areFinite(Int32Array.from(blocks));
    expect([finite(), finite(3), finite(1, 3), finite(7), finite(4), finite(3, 4, 1)]).toEqual([
      true,
      true,
      true,
      false,
      false,
      false,
    ]);
    expect(() => finite(8)).toThrow('blocks[0] is 8');
    executor.close();
  });

  it('samples in the same call what forward and sample give in two', () => {
    const tiny = networks.make({ seed: 10 });
    const random = new Random(12);
    const options = { tokensPerBlock: 16, inverseFrequencies: tiny.inverseFrequencies };
    const executor = new NativeExecutor(tiny, executorOptions());
    const batch = makeStepBatch(
      [0, 1, 2].map((s) => ({
        tokens: random.tokens(5 + s, tiny.shape.vocabSize),
        cached: 0,
        blocks: [s],
      })),
      options,
    );
    const sampling = makeSamplingBatch([
      { numTopLogProbs: 3 },
      { temperature: 0.9, topP: 0.8, seed: 5n, numTopLogProbs: 0 },
      { temperature: 2, seed: 99n, banned: [4], prompt: [1, 2], generated: [3, 3], frequencyPenalty: 0.5 },
    ]);
    const [fused, split] = [makeSamplingOutput(3, 3), makeSamplingOutput(3, 3)];
    executor.step(batch, sampling, fused);
    const logits = executor.forward(batch);
    expect(logits.length).toBe(3 * tiny.shape.vocabSize);
    const before = logits.slice();
    executor.sample(sampling, split);
    expect(split).toEqual(fused);
    expect(logits).toEqual(before);
    executor.close();
  });
});
