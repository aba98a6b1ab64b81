import { afterAll, afterEach, describe, expect, test } from 'vitest';
import type { WeightPrecision } from '../../../engine/executors/executor.js';
import { NativeExecutor } from '../../../engine/executors/native/native-executor.js';
import type { GroupShape } from '../../../engine/ranks/rank-shape.js';
import { ropeFrequencies } from '../../../network/rope.js';
import { makeStepBatch } from '../../../tools/support/step-batch.js';
import {
  engineOptions,
  nativeEngine,
  TestEngines,
  tinyModelPath,
} from '../../../tools/support/test-engine.js';
import { TinyNetworks, type TinyShape } from '../../../tools/support/tiny-network.js';
import { executorOptions } from '../../support/native-options.js';
import { randomAdapter } from '../../support/random-adapter.js';
import { TestGroups } from '../../support/rank-groups.js';

const networks = new TinyNetworks();
const groups = new TestGroups();
afterEach(() => groups.close());
afterAll(() => networks.remove());
const engines = new TestEngines();
afterAll(() => engines.remove());

const OPTIONS = executorOptions({ threads: 1, maxNumTokens: 64, maxLogitRows: 16 });

/** Two prompts, one of them in two chunks, then two steps of generation: all logits that come out. */
function allLogits(
  executor: Pick<NativeExecutor, 'forward'>,
  inverseFrequencies: Float32Array,
): Float32Array[] {
  const a = Array.from({ length: 23 }, (_, i) => (i * 7) % 100);
  const b = Array.from({ length: 40 }, (_, i) => (i * 11 + 3) % 100);
  const step = (sequences: Parameters<typeof makeStepBatch>[0], newBlocks: number[]) =>
    executor.forward(makeStepBatch(sequences, { tokensPerBlock: 16, inverseFrequencies, newBlocks })).slice();
  return [
    step(
      [
        { tokens: a, cached: 0, blocks: [0, 1] },
        { tokens: b.slice(0, 20), cached: 0, blocks: [5, 3, 4], logits: 'none' },
      ],
      [0, 1, 5, 3],
    ),
    step(
      [
        { tokens: b, cached: 20, blocks: [5, 3, 4] },
        { tokens: [...a, 9], cached: 23, blocks: [0, 1] },
      ],
      [4],
    ),
    step(
      [
        { tokens: [...b, 1], cached: 40, blocks: [5, 3, 4] },
        { tokens: [...a, 9, 2], cached: 24, blocks: [0, 1], logits: 'all' },
      ],
      [],
    ),
  ];
}

async function expectSameBits(changes: Partial<TinyShape>, shape: Partial<GroupShape>): Promise<void> {
  const network = networks.make(changes);
  const alone = new NativeExecutor(network, OPTIONS);
  const { executor } = await groups.open(network, shape, OPTIONS);
  expect(allLogits(executor, network.inverseFrequencies)).toEqual(
    allLogits(alone, network.inverseFrequencies),
  );
  alone.close();
}

describe('the logits of ranks are those of one process', () => {
  const two = { tensorParallelSize: 2 };
  const shapes: Partial<GroupShape>[] = [
    two,
    { tensorParallelSize: 3 },
    { tensorParallelSize: 4 },
    { pipelineParallelSize: 2 },
    { ...two, pipelineParallelSize: 2 },
  ];
  describe.each(shapes)('on %o', (shape) => {
    // Widths of which exchanges are streamed, too.
    test.each(['f32', 'bf16', 'int8', 'int4'] satisfies WeightPrecision[])('%s', async (precision) => {
      await expectSameBits({ precision, hiddenSize: 64, intermediateSize: 192 }, shape);
    });
    test('stacks of superblocks as they are stored: q4_k, q5_k and q6_k', async () => {
      const wide = { hiddenSize: 256, intermediateSize: 256, headDim: 64 };
      await expectSameBits({ precision: 'mixed', ...wide }, shape);
    });
  });
  test.each([2, 3, 4])('9 heads, 3 KV heads among %i ranks', async (tensorParallelSize) => {
    await expectSameBits({ numHeads: 9, numKvHeads: 3, bias: true }, { tensorParallelSize });
  });
  test('features of other architectures', () => expectSameBits({ varied: true }, two));
  test('3 stages', () => expectSameBits({ numLayers: 5 }, { pipelineParallelSize: 3 }));
  test('2 x 2', () => expectSameBits({ varied: true, numLayers: 4 }, { ...two, pipelineParallelSize: 2 }));
});

describe('LoRA adapters on ranks', () => {
  test('a rank changes its own outputs', async () => {
    const built = await engines.get(tinyModelPath('gqa'), 'bf16');
    const engine = nativeEngine(built);
    const { config } = built.manifest;
    const options = engineOptions(built, {
      threads: 1,
      maxNumSequences: 2,
      maxAdapters: 2,
      maxLoraRank: 4,
    });
    const alone = new NativeExecutor(engine, options);
    const { executor } = await groups.open(
      engine,
      { tensorParallelSize: 2, pipelineParallelSize: 2 },
      options,
    );
    const weights = randomAdapter(config, 7, { maxRank: 4, unchanged: 0 });
    const batch = makeStepBatch(
      [
        { tokens: [1, 2, 3, 4, 5], cached: 0, blocks: [0], logits: 'all', adapter: 1 },
        { tokens: [1, 2, 3], cached: 0, blocks: [1] },
      ],
      {
        tokensPerBlock: options.tokensPerBlock,
        inverseFrequencies: ropeFrequencies(config.rope).inverseFrequencies,
        newBlocks: [0, 1],
      },
    );
    const logits = [alone, executor].map((one) => {
      const before = one.forward({ ...batch, adapterSlots: null }).slice();
      one.adapters!.put(1, weights);
      const after = one.forward(batch).slice();
      one.adapters!.clear(1);
      return { before, after, cleared: one.forward({ ...batch, adapterSlots: null }).slice() };
    });
    expect(logits[1]).toEqual(logits[0]);
    expect(logits[0]!.after).not.toEqual(logits[0]!.before);
    expect(logits[0]!.cleared).toEqual(logits[0]!.before);
    alone.close();
  });
});
