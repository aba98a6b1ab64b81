import { afterAll, describe, expect, it } from 'vitest';
import type { WeightPrecision } from '../../../../engine/directory/engine-directory.js';
import type { ExecutorOptions } from '../../../../engine/executors/executor.js';
import type { Activation } from '../../../../network/plan.js';
import { Random } from '../../../../tools/support/random.js';
import { makeStepBatch } from '../../../../tools/support/step-batch.js';
import { type TinyNetwork, TinyNetworks } from '../../../../tools/support/tiny-network.js';
import { greatestError, naiveLogits } from '../../../support/naive-network.js';
import { PagedSequences } from '../../../support/paged-sequences.js';
import { SteppedRunner } from '../../../support/wasm-runner.js';

const networks = new TinyNetworks();
afterAll(() => networks.remove());

/** Greatest difference of any logit from the naive network's, over context and generation rows in random blocks. */
async function errorOf(tiny: TinyNetwork, options: Partial<ExecutorOptions> = {}): Promise<number> {
  const random = new Random(7);
  const executor = await SteppedRunner.open(tiny, options);
  const tokens = [37, 9, 70, 1, 18].map((length) => random.tokens(length, tiny.shape.vocabSize));
  const blocks = random.permutation(executor.options.numBlocks);
  const sequences = new PagedSequences(executor, tiny, tokens, blocks);
  sequences.runAll([30, 9, 65, 1, 2]);
  const { maxAttentionWindow, sinkTokenLength = 0 } = options;
  let greatest = 0;
  for (const [s, ofSequence] of tokens.entries()) {
    const expected = naiveLogits(tiny.plan, tiny.weights, ofSequence, {
      kvDtype: 'f32',
      inverseFrequencies: tiny.inverseFrequencies,
      ropeScale: 1,
      ...(maxAttentionWindow === undefined
        ? {}
        : { window: { tokens: maxAttentionWindow, sinks: sinkTokenLength } }),
    });
    greatest = Math.max(greatest, greatestError(sequences.logits[s]!, expected));
  }
  return greatest;
}

describe('a network', () => {
  it.each([8, 16, 32, 64])('is the naive network, %i tokens per block', async (tokensPerBlock) => {
    expect(await errorOf(networks.make(), { tokensPerBlock })).toBeLessThan(2e-5);
  });

  it.each<WeightPrecision>(['bf16', 'int8', 'int4'])('takes weights stored as %s', async (precision) => {
    expect(await errorOf(networks.make({ precision }))).toBeLessThan(2e-5);
  });

  it.each<Activation>(['silu', 'gelu', 'geluTanh', 'tanh', 'relu', 'reluSquared', 'quickGelu'])(
    'takes biases, and %s',
    async (activation) => {
      expect(await errorOf(networks.make({ bias: true, activation }))).toBeLessThan(2e-5);
    },
  );

  it.each([
    { numHeads: 1, numKvHeads: 1, headDim: 64, hiddenSize: 64 },
    { numHeads: 9, numKvHeads: 3, headDim: 8, hiddenSize: 72 },
    { numHeads: 6, numKvHeads: 1, headDim: 24, hiddenSize: 41, intermediateSize: 67, vocabSize: 259 },
    { numHeads: 8, numKvHeads: 8, headDim: 16, hiddenSize: 128, numLayers: 1 },
    { numHeads: 2, numKvHeads: 1, headDim: 10, hiddenSize: 20 },
  ])('takes the shape %o', async (shape) => {
    expect(await errorOf(networks.make(shape))).toBeLessThan(2e-5);
  });

  it.each([
    { ownHeads: [{ numKvHeads: 1 }] },
    { ownHeads: [{ numHeads: 2, numKvHeads: 1 }, { numHeads: 6 }], numLayers: 3, gateless: true },
    { ownHeads: [{}, { headDim: 24 }, { numKvHeads: 4, headDim: 8 }], numLayers: 4 },
    { ownHeads: [{ headDim: 8 }, { numKvHeads: 1, headDim: 32 }], varied: true },
  ])('takes layers that keep different heads: %o', async (shape) => {
    expect(await errorOf(networks.make(shape))).toBeLessThan(2e-5);
    const window = { maxAttentionWindow: 24, tokensPerBlock: 8 };
    expect(await errorOf(networks.make(shape), window)).toBeLessThan(2e-5);
    if (shape.varied) return;
    expect(await errorOf(networks.make(shape), { ...window, sinkTokenLength: 4 })).toBeLessThan(2e-5);
  });

  it.each([
    { readingLayers: 2, numLayers: 4, gateless: true },
    { layerInputs: true, readingLayers: 1, numLayers: 3, varied: true },
    {
      ownHeads: [{ headDim: 24, numKvHeads: 1 }, { headDim: 8 }],
      readingLayers: 1,
      numLayers: 3,
      varied: true,
    },
  ])('takes layers that read what the first one keeps: %o', async (shape) => {
    expect(await errorOf(networks.make(shape))).toBeLessThan(2e-5);
  });

  it('copies, clears and looks through blocks of every layer where they differ in size', async () => {
    const tiny = networks.make({
      ownHeads: [{ headDim: 24 }, {}, { numKvHeads: 1, headDim: 8 }],
      numLayers: 3,
    });
    const executor = await SteppedRunner.open(tiny, {
      tokensPerBlock: 8,
      numBlocks: 12,
      numSecondaryBlocks: 4,
    });
    const { inverseFrequencies } = tiny;
    const tokens = new Random(3).tokens(19, tiny.shape.vocabSize);
    const step = (cached: number, upTo: number, blocks: number[], newBlocks: number[] = []) => {
      const rows = [{ tokens: tokens.slice(0, upTo), cached, blocks }];
      return executor
        .forward(makeStepBatch(rows, { tokensPerBlock: 8, inverseFrequencies, newBlocks }))
        .slice();
    };
    // Block 15 is a secondary one: the last block of the last layer.
    step(0, 18, [3, 11, 0], [3, 11, 0]);
    const expected = step(18, 19, [3, 11, 0]);
    executor.runner.copyBlocks(Int32Array.of(11, 3, 0), Int32Array.of(15, 12, 5));
    step(0, 18, [11, 3, 0], [11, 3, 0]);
    executor.runner.copyBlocks(Int32Array.of(15, 12), Int32Array.of(7, 8));
    expect(step(18, 19, [8, 7, 5])).toEqual(expected);
    expect(executor.runner.areFinite(Int32Array.of(0, 3, 5, 7, 8, 11, 12, 15))).toBe(true);
  });

  it('takes scaled embeddings, normed heads, norms behind attention, caps and layers with a window of their own', async () => {
    expect(await errorOf(networks.make({ varied: true }))).toBeLessThan(2e-5);
  });

  it.each([
    { maxAttentionWindow: 16 },
    { maxAttentionWindow: 21 },
    { maxAttentionWindow: 5, tokensPerBlock: 8 },
    { maxAttentionWindow: 24, sinkTokenLength: 4 },
    { maxAttentionWindow: 19, sinkTokenLength: 3, tokensPerBlock: 8 },
    { maxAttentionWindow: 40, sinkTokenLength: 17, tokensPerBlock: 8 },
  ])('keeps a window of the cache: %o', async (window) => {
    expect(await errorOf(networks.make(), window)).toBeLessThan(2e-5);
  });

  it('keeps a window of the cache beside a window of a layer', async () => {
    expect(await errorOf(networks.make({ varied: true }), { maxAttentionWindow: 50 })).toBeLessThan(2e-5);
  });
});
