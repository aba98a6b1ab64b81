import { afterAll, afterEach, describe, expect, test } from 'vitest';
import type { WeightPrecision } from '../../../engine/executors/executor.js';
import { NativeExecutor } from '../../../engine/executors/native/native-executor.js';
import type { GroupShape } from '../../../engine/ranks/rank-shape.js';
import { makeStepBatch } from '../../../tools/support/step-batch.js';
import { TinyNetworks, type TinyShape } from '../../../tools/support/tiny-network.js';
import { executorOptions } from '../../support/native-options.js';
import { TestGroups } from '../../support/rank-groups.js';

const networks = new TinyNetworks();
const groups = new TestGroups();
afterEach(() => groups.close());
afterAll(() => networks.remove());

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
  test.each(['f32', 'bf16', 'int8', 'int4'] satisfies WeightPrecision[])('%s', async (precision) => {
    await expectSameBits({ precision, hiddenSize: 64, intermediateSize: 96 }, two);
  });
  test.each([2, 3, 4])('9 heads, 3 KV heads among %i ranks', async (tensorParallelSize) => {
    await expectSameBits({ numHeads: 9, numKvHeads: 3, bias: true }, { tensorParallelSize });
  });
  test('features of other architectures', () => expectSameBits({ varied: true }, two));
  test('2 stages', () => expectSameBits({ numLayers: 3 }, { pipelineParallelSize: 2 }));
  test('2 x 2', () => expectSameBits({ varied: true, numLayers: 4 }, { ...two, pipelineParallelSize: 2 }));
});
