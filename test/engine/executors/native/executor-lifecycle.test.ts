import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { NativeExecutor } from '../../../../engine/executors/native/native-executor.js';
import { makeSamplingBatch, makeSamplingOutput } from '../../../../tools/support/sampling-rows.js';
import { makeStepBatch } from '../../../../tools/support/step-batch.js';
import { makeTinyNetwork, type TinyNetwork } from '../../../../tools/support/tiny-network.js';
import { executorOptions, instructionSets } from '../../../support/native-options.js';

let tiny: TinyNetwork;
beforeAll(() => {
  tiny = makeTinyNetwork();
});
afterAll(() => tiny.remove());

const batch = () =>
  makeStepBatch([{ tokens: [1, 2, 3], cached: 0, blocks: [0] }], {
    tokensPerBlock: 16,
    inverseFrequencies: tiny.inverseFrequencies,
  });

describe('an executor', () => {
  it('reports its memory', () => {
    const executor = new NativeExecutor(tiny, executorOptions({ numBlocks: 64, kvDtype: 'f32' }));
    const memory = executor.memory();
    // 2 layers x 64 blocks x 16 tokens x 2 heads x 16 x (K and V) x 4 bytes
    expect(memory.kvCacheBytes).toBe(2 * 64 * 16 * 2 * 16 * 2 * 4);
    const weights = [...tiny.weights.values()].reduce((sum, values) => sum + 4 * values.length, 0);
    expect(memory.weightBytes).toBeGreaterThanOrEqual(weights - 4 * 5 * 48);
    expect(memory.workspaceBytes).toBeGreaterThan(256 * 131 * 4);
    executor.close();
  });

  it('closes once, twice, and answers nothing afterwards', () => {
    const executor = new NativeExecutor(tiny, executorOptions());
    const logits = executor.forward(batch());
    expect(logits.length).toBe(131);
    executor.close();
    executor.close();
    expect(logits.length).toBe(0);
    expect(() => executor.forward(batch())).toThrow('The executor is closed.');
    expect(() => executor.step(batch(), makeSamplingBatch([{}]), makeSamplingOutput(1))).toThrow('closed');
    expect(() => executor.sample(makeSamplingBatch([]), makeSamplingOutput(0))).toThrow('closed');
    expect(() => executor.copyBlocks(new Int32Array(0), new Int32Array(0))).toThrow('closed');
    expect(() => executor.memory()).toThrow('closed');
  });

  it('counts seconds per kind of op only while asked to', () => {
    const executor = new NativeExecutor(tiny, executorOptions());
    executor.profile(true);
    executor.forward(batch());
    expect(executor.profile(false).linear).toBeGreaterThan(0);
    executor.forward(batch());
    expect(executor.profile(false).linear).toBe(0);
    executor.close();
  });

  it('gives all memory and threads back, 20 times over', () => {
    // 100 MiB each, all of it touched.
    const once = () => {
      const executor = new NativeExecutor(
        tiny,
        executorOptions({ threads: 4, numBlocks: 12800, maxNumTokens: 64 }),
      );
      expect(executor.memory().kvCacheBytes).toBe(100 * 2 ** 20);
      const newBlocks = Array.from({ length: 12800 }, (_, i) => i);
      executor.forward(
        makeStepBatch([{ tokens: [1], cached: 0, blocks: [0] }], {
          tokensPerBlock: 16,
          inverseFrequencies: tiny.inverseFrequencies,
          newBlocks,
        }),
      );
      executor.close();
    };
    once();
    const before = process.memoryUsage.rss();
    for (let i = 0; i < 20; i++) once();
    expect(process.memoryUsage.rss() - before).toBeLessThan(200 * 2 ** 20);
  });
});

describe('worker threads', () => {
  const script = fileURLToPath(new URL('./executor-worker.mjs', import.meta.url));
  const start = () => {
    const { plan, weightsFile, tensors, packedFolder } = tiny;
    const packedFile = join(packedFolder, 'packed-of-worker.bin');
    const instructionSet = instructionSets[instructionSets.length - 1]!;
    const window = { maxAttentionWindow: 0, sinkTokenLength: 0, maxAdapters: 0, maxLoraRank: 0 };
    const options = {
      ...executorOptions(),
      plan,
      weightsFile,
      tensors,
      packedFile,
      instructionSet,
      ...window,
    };
    return new Worker(script, { workerData: { options, batch: batch() } });
  };

  it('each have executors of their own, beside this thread', async () => {
    const executor = new NativeExecutor(tiny, executorOptions());
    const expected = executor.forward(batch()).slice();
    const workers = [start(), start()];
    const answers = await Promise.all(
      workers.map(
        (worker) => new Promise((resolve, reject) => worker.once('message', resolve).once('error', reject)),
      ),
    );
    expect(answers).toEqual([expected, expected]);
    await Promise.all(workers.map((worker) => worker.terminate()));
    expect(executor.forward(batch())).toEqual(expected);
    executor.close();
  });

  it('may be terminated in the middle of a step', async () => {
    for (let i = 0; i < 5; i++) {
      const worker = start();
      await new Promise((resolve, reject) => worker.once('message', resolve).once('error', reject));
      worker.postMessage('step for ever');
      await wait(5 * i);
      await worker.terminate();
    }
  });
});
