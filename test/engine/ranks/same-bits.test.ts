import { join } from 'node:path';
import { afterAll, afterEach, describe, expect, test } from 'vitest';
import type { TensorPrecision } from '../../../engine/directory/engine-directory.js';
import { NativeExecutor } from '../../../engine/executors/native/native-executor.js';
import type { GroupShape } from '../../../engine/sharding/rank-shape.js';
import { ropeFrequencies } from '../../../network/rope.js';
import { makeStepBatch } from '../../../tools/support/step-batch.js';
import {
  engineOptions,
  nativeEngine,
  TestEngines,
  tinyModelPath,
} from '../../../tools/support/test-engine.js';
import { TinyNetworks, type TinyShape } from '../../../tools/support/tiny-network.js';
import { temporaryFolder } from '../../support/fresh-folders.js';
import { executorOptions } from '../../support/native-options.js';
import { randomAdapter } from '../../support/random-adapter.js';
import { TestGroups } from '../../support/rank-groups.js';
import { OF_GROUPS_AND_TABLES, writeSuperblockModel } from '../../support/superblock-model.js';

const tables = writeSuperblockModel(
  join(temporaryFolder('skein-same-bits'), 'tables.gguf'),
  OF_GROUPS_AND_TABLES,
  'Q5_0',
);
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
  vocabSize = 100,
): Float32Array[] {
  const a = Array.from({ length: 23 }, (_, i) => (i * 7) % vocabSize);
  const b = Array.from({ length: 40 }, (_, i) => (i * 11 + 3) % vocabSize);
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
        { tokens: [...a, 5], cached: 23, blocks: [0, 1] },
      ],
      [4],
    ),
    step(
      [
        { tokens: [...b, 1], cached: 40, blocks: [5, 3, 4] },
        { tokens: [...a, 5, 2], cached: 24, blocks: [0, 1], logits: 'all' },
      ],
      [],
    ),
  ];
}

async function expectSameBits(changes: Partial<TinyShape>, shape: Partial<GroupShape>): Promise<void> {
  const network = networks.make(changes);
  const alone = new NativeExecutor(network, OPTIONS);
  const { executor } = await groups.open(network, shape, OPTIONS);
  const [found, expected] = [executor, alone].map((one) =>
    Buffer.concat(allLogits(one, network.inverseFrequencies).map(({ buffer }) => Buffer.from(buffer))),
  );
  expect(found!.equals(expected!)).toBe(true);
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
    const place = shapes.indexOf(shape);
    // Widths of which exchanges are streamed, too.
    const types = ['f32', 'bf16', 'int8', 'int4', 'q5_0', 'q5_1', 'iq4_nl', 'mxfp4'] as const;
    // What a shape cuts does not depend on the type: each type on two of the shapes, and each shape with three types or more.
    const own = types.filter((_, i) => i % 5 === place || (i + 2) % 5 === place);
    test.each(own satisfies readonly TensorPrecision[])('%s', async (precision) => {
      await expectSameBits({ precision, hiddenSize: 64, intermediateSize: 192 }, shape);
    });
    const wide = { hiddenSize: 256, intermediateSize: 256, headDim: 64 };
    test('iq4_xs', () => expectSameBits({ precision: 'iq4_xs', ...wide }, shape));
    test('stacks of superblocks as they are stored: q4_k, q5_k and q6_k', async () => {
      await expectSameBits({ precision: 'mixed', ...wide }, shape);
    });
  });
  // The rows that a rank has of qkv are then of several types.
  test.each([two, { pipelineParallelSize: 2 }, { ...two, pipelineParallelSize: 2 }])(
    'a file of which q, k and v have types of their own, on %o',
    async (shape) => {
      const built = await engines.get(tables, 'stored');
      const { config } = built.manifest;
      const { inverseFrequencies } = ropeFrequencies(config.rope);
      const alone = new NativeExecutor(nativeEngine(built), OPTIONS);
      const { executor } = await groups.open(nativeEngine(built), shape, OPTIONS);
      const [found, expected] = [executor, alone].map((one) =>
        allLogits(one, inverseFrequencies, config.vocabSize),
      );
      expect(found).toEqual(expected);
      expect(expected!.at(-1)!.every(Number.isFinite)).toBe(true);
      alone.close();
    },
  );
  test.each([2, 3, 4])('9 heads, 3 KV heads among %i ranks', async (tensorParallelSize) => {
    await expectSameBits({ numHeads: 9, numKvHeads: 3, bias: true }, { tensorParallelSize });
  });
  test('features of other architectures', () => expectSameBits({ varied: true }, two));
  test('scores without values: 9 heads among 2 ranks', () =>
    expectSameBits({ sunk: true, numHeads: 9, numKvHeads: 3 }, two));
  test('stages with them, and with experts that are clamped', async () => {
    const experts = { count: 4, used: 2, normalize: true, clamped: true } as const;
    await expectSameBits({ sunk: true, experts }, { pipelineParallelSize: 2 });
  });
  test('norms of heads, and an MLP without a gate', () => expectSameBits({ gateless: true }, two));
  test('9 heads with norms of their own among 4 ranks', async () => {
    await expectSameBits({ gateless: true, numHeads: 9, numKvHeads: 3 }, { tensorParallelSize: 4 });
  });
  test('3 stages', () => expectSameBits({ numLayers: 5 }, { pipelineParallelSize: 3 }));
  test('2 x 2', () => expectSameBits({ varied: true, numLayers: 4 }, { ...two, pipelineParallelSize: 2 }));
});

describe('LoRA adapters on ranks', () => {
  test.each<[string, Partial<GroupShape>]>([
    ['gqa', { tensorParallelSize: 2, pipelineParallelSize: 2 }],
    ['gqa', { tensorParallelSize: 3 }],
    // 4 heads, 2 KV heads: two of three ranks, and each pair of four, hold the same KV head.
    ['mistral', { tensorParallelSize: 3 }],
    ['mistral', { tensorParallelSize: 4 }],
  ])('each rank of %s on %o changes its own outputs', async (variant, shape) => {
    const built = await engines.get(tinyModelPath(variant), 'bf16');
    const engine = nativeEngine(built);
    const { config } = built.manifest;
    const options = engineOptions(built, {
      threads: 1,
      maxNumSequences: 2,
      maxAdapters: 2,
      maxLoraRank: 4,
    });
    const alone = new NativeExecutor(engine, options);
    const { executor } = await groups.open(engine, shape, options);
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
