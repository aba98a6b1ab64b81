import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { NativeExecutor } from '../../../../engine/executors/native/native-executor.js';
import { makeSamplingBatch, makeSamplingOutput } from '../../../../tools/support/sampling-rows.js';
import { makeStepBatch } from '../../../../tools/support/step-batch.js';
import { makeTinyNetwork, type TinyNetwork } from '../../../../tools/support/tiny-network.js';
import { executorOptions } from '../../../support/native-options.js';

let tiny: TinyNetwork;
beforeAll(() => {
  tiny = makeTinyNetwork();
});
afterAll(() => tiny.remove());

const batchOf = (tokens: number[]) =>
  makeStepBatch([{ tokens, cached: 0, blocks: [0] }], {
    tokensPerBlock: 16,
    inverseFrequencies: tiny.inverseFrequencies,
  });
const rows = () => makeSamplingBatch([{ temperature: 0.8, seed: 7n, numTopLogProbs: 2 }]);
const output = () => makeSamplingOutput(1, 2);

describe('turns to compute', () => {
  it('cost one executor alone no wait, and are counted', () => {
    const executor = new NativeExecutor(tiny, executorOptions({ threads: 2 }));
    const before = executor.turns();
    for (let i = 0; i < 10; i++) executor.step(batchOf([1, 2, 3]), rows(), output());
    const after = executor.turns();
    expect(after.heldSeconds).toBeGreaterThan(before.heldSeconds);
    expect(after.waitedSeconds).toBe(before.waitedSeconds);
    expect(after.partings).toBe(before.partings);
    executor.close();
  });

  it.each([1, 2, 64])('change nothing in what executors of %s threads draw side by side', (threads) => {
    const heartbeat = new Int32Array(new SharedArrayBuffer(8));
    const options = () => executorOptions({ threads, heartbeat, computeWeight: 3 });
    const executors = Array.from({ length: 3 }, () => new NativeExecutor(tiny, options()));
    const tokens = [[1, 2, 3, 4, 5], [9, 8], [100]];
    const expected = executors.map((executor, i) => {
      const alone = output();
      executor.step(batchOf(tokens[i]!), rows(), alone);
      return alone;
    });
    for (let turn = 0; turn < 30; turn++) {
      // Each on a thread of its own; they end in any order.
      const drawn = executors.map((executor, i) => {
        const together = output();
        executor.begin(batchOf(tokens[i]!), rows(), together);
        return together;
      });
      for (const executor of executors) executor.finish();
      expect(drawn).toStrictEqual(expected);
    }
    for (const executor of executors) executor.close();
  });

  it('are shown to who watches through an Int32Array, and through nothing else', () => {
    for (const heartbeat of [new Float32Array(2), new Int32Array(0)]) {
      const options = executorOptions({ heartbeat: heartbeat as Int32Array });
      expect(() => new NativeExecutor(tiny, options)).toThrow(
        'heartbeat must be an Int32Array with an element.',
      );
    }
  });
});
