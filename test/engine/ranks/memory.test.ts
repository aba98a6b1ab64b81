import { afterAll, expect, test } from 'vitest';
import { NativeExecutor } from '../../../engine/executors/native/native-executor.js';
import { type GroupShape, sizeOf } from '../../../engine/sharding/rank-shape.js';
import { TinyNetworks } from '../../../tools/support/tiny-network.js';
import { executorOptions } from '../../support/native-options.js';
import { TestGroups } from '../../support/rank-groups.js';

const networks = new TinyNetworks();
const groups = new TestGroups();
afterAll(async () => {
  await groups.close();
  networks.remove();
});

const network = networks.make({
  precision: 'int8',
  numLayers: 4,
  hiddenSize: 384,
  intermediateSize: 768,
  numHeads: 12,
  numKvHeads: 12,
});
const options = executorOptions({ threads: 1, maxNumTokens: 16, maxLogitRows: 4 });

test.each([
  [2, 1],
  [3, 1],
  [4, 1],
  [1, 2],
  [2, 2],
])('of %i x %i ranks each has its share of the weights and of the cache', async (tensor, pipeline) => {
  const shape: GroupShape = { tensorParallelSize: tensor, pipelineParallelSize: pipeline };
  const size = sizeOf(shape);
  const whole = NativeExecutor.measure(network, options);
  const parts = Array.from({ length: size }, (_, rank) =>
    NativeExecutor.measure(network, { ...options, seat: { shape, rank } }),
  );
  const { executor } = await groups.open(network, shape, options);
  const sums = { weightBytes: 0, kvCacheBytes: 0, workspaceBytes: 0 };
  for (const part of parts) {
    // Norms are each rank's, and the last stage alone has the output layer.
    if (pipeline === 1) expect(part.weightBytes).toBeLessThan(1.1 * (whole.weightBytes / size));
    expect(part.weightBytes).toBeGreaterThan(0.5 * (whole.weightBytes / size));
    expect(part.kvCacheBytes).toBe(whole.kvCacheBytes / size);
    for (const name of ['weightBytes', 'kvCacheBytes', 'workspaceBytes'] as const) sums[name] += part[name];
  }
  expect(sums.weightBytes / whole.weightBytes).toBeLessThan(1.05);
  expect(sums.weightBytes / whole.weightBytes).toBeGreaterThan(0.95);
  expect(sums.kvCacheBytes).toBe(whole.kvCacheBytes);
  expect(executor.memory()).toMatchObject(sums);
});
