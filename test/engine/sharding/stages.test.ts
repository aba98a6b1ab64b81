import { afterAll, describe, expect, test } from 'vitest';
import { cutIntoStages, leastMicroBatch, type StoredPlan } from '../../../engine/sharding/stages.js';
import { TinyNetworks } from '../../../tools/support/tiny-network.js';

const networks = new TinyNetworks();
afterAll(() => networks.remove());

const ofStages = (pipelineParallelSize: number, tensorParallelSize = 1) => ({
  tensorParallelSize,
  pipelineParallelSize,
});

/** The weights are as large as is said, whatever their shape: of each layer, and of the output layer. */
function stored(numLayers: number, { layer = 1000, output = 1000 }): StoredPlan {
  const { plan } = networks.make({ numLayers });
  const products = plan.ops.filter((op) => op.op === 'linear' || op.op === 'gatedLinear');
  const head = products.at(-1)!.weight;
  const ofLayer = (products.length - 1) / numLayers;
  const tensors = products.map(({ weight }) => ({
    name: weight,
    byteLength: weight === head ? output : layer / ofLayer,
  }));
  return { plan, tensors: tensors as unknown as StoredPlan['tensors'] };
}

/** Layers of each stage. */
function layersOf(engine: StoredPlan, stages: number, tensorParallelSize = 1): number[] {
  return cutIntoStages(engine, ofStages(stages, tensorParallelSize)).stages.map(
    ({ begin, end }) => engine.plan.ops.slice(begin, end).filter(({ op }) => op === 'ropeAndCache').length,
  );
}

describe('stages', () => {
  test.each([
    [30, 8, 2, [11, 19]],
    [16, 3, 4, [2, 5, 5, 4]],
    [4, 0, 2, [2, 2]],
    [5, 0, 2, [3, 2]],
    [7, 0, 3, [3, 2, 2]],
    [3, 1, 3, [1, 1, 1]],
    [3, 50, 3, [1, 1, 1]],
  ])('%i layers and an output layer as large as %i of them, in %i stages', (layers, head, stages, dealt) => {
    expect(layersOf(stored(layers, { output: head * 1000 }), stages)).toEqual(dealt);
  });

  test('layers count all of their experts', () => {
    const { plan, tensors } = networks.make({
      numLayers: 4,
      experts: { count: 6, used: 1, normalize: true },
    });
    const widened = tensors.map((one) => ({
      ...one,
      byteLength: one.name.startsWith('layers.0.experts.') ? 1000 : 100,
    }));
    // 12 matrices of 1000 in the first layer; 12 of 100 in each of the others.
    expect(layersOf({ plan, tensors: widened }, 2)).toEqual([1, 3]);
    expect(layersOf({ plan, tensors }, 2)).toEqual([2, 2]);
  });

  test('where ranks share a stage the last one has the output layer', () => {
    const engine = stored(30, { output: 8000 });
    expect(layersOf(engine, 2, 2)).toEqual([19, 11]);
    expect(cutIntoStages(engine, ofStages(2, 2)).head).toBeNull();
    expect(cutIntoStages(engine, ofStages(1)).head).toBeNull();
  });

  test('of an output that is no wider than the hidden rows nothing is gained at rank 0', () => {
    const { plan, ...rest } = stored(4, {});
    const narrow = { ...rest, plan: { ...plan, outputWidth: 48 } };
    expect(cutIntoStages(narrow, ofStages(2)).head).toBeNull();
  });

  test('micro-batches are small where the stages are even, and larger where one holds up the others', () => {
    expect(leastMicroBatch(stored(30, { output: 8000 }), ofStages(2))).toBe(1);
    expect(leastMicroBatch(stored(16, { output: 3000 }), ofStages(4))).toBe(1);
    // The slowest of the three has 50 of 52 parts: nearly all of the work is in one place.
    expect(leastMicroBatch(stored(3, { output: 50_000 }), ofStages(3))).toBeGreaterThan(100);
    // 3 + 2: 1.2 times its share.
    expect(leastMicroBatch(stored(5, { output: 0 }), ofStages(2))).toBe(4);
  });
});
