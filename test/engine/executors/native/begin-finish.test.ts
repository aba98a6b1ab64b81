import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { NativeExecutor } from '../../../../engine/executors/native/native-executor.js';
import { makeSamplingBatch, makeSamplingOutput } from '../../../../tools/support/sampling-rows.js';
import { makeStepBatch } from '../../../../tools/support/step-batch.js';
import { makeTinyNetwork, type TinyNetwork } from '../../../../tools/support/tiny-network.js';
import { bestInstructionSet, executorOptions } from '../../../support/native-options.js';

const RUNNING = 'A begun step is running; finish() must come first.';

let tiny: TinyNetwork;
beforeAll(() => {
  tiny = makeTinyNetwork();
});
afterAll(() => tiny.remove());

const batchOf = (tokens: number[], block: number) =>
  makeStepBatch([{ tokens, cached: 0, blocks: [block] }], {
    tokensPerBlock: 16,
    inverseFrequencies: tiny.inverseFrequencies,
  });
const rows = () => makeSamplingBatch([{ temperature: 0.8, seed: 7n, numTopLogProbs: 2 }]);
const output = () => makeSamplingOutput(1, 2);

describe('begin and finish', () => {
  it.each([1, 2, 5])('draw what step draws, bit for bit, on %s threads', (threads) => {
    const executor = new NativeExecutor(tiny, executorOptions({ threads }));
    for (let length = 1; length <= 12; length++) {
      const tokens = Array.from({ length }, (_, i) => 1 + ((7 * i + length) % 130));
      const stepped = output();
      const begun = output();
      executor.step(batchOf(tokens, 0), rows(), stepped);
      executor.begin(batchOf(tokens, 1), rows(), begun);
      executor.finish();
      expect(begun).toStrictEqual(stepped);
    }
    executor.close();
  });

  it('take turns with two batches, each packed while the other one runs', () => {
    const executor = new NativeExecutor(tiny, executorOptions({ threads: 2 }));
    const outputs = [output(), output()];
    const expected = [output(), output()];
    for (const [i, tokens] of [
      [1, 2, 3],
      [9, 8],
    ].entries()) {
      executor.step(batchOf(tokens, i), rows(), expected[i]!);
    }
    executor.begin(batchOf([1, 2, 3], 0), rows(), outputs[0]!);
    for (let turn = 1; turn < 50; turn++) {
      const next = turn % 2;
      const batch = batchOf(next === 0 ? [1, 2, 3] : [9, 8], next);
      executor.finish();
      expect(outputs[1 - next]).toStrictEqual(expected[1 - next]);
      outputs[next] = output();
      executor.begin(batch, rows(), outputs[next]!);
    }
    executor.finish();
    executor.close();
  });

  it('keep the arrays that nobody else holds', () => {
    const executor = new NativeExecutor(tiny, executorOptions());
    const expected = output();
    executor.step(batchOf([5, 6, 7], 0), rows(), expected);
    const drawn = output();
    executor.begin(batchOf([5, 6, 7], 0), rows(), drawn);
    // Garbage of the same sizes, so that freed memory would be taken again and written.
    for (let i = 0; i < 2000; i++) batchOf([i % 130, 3], 0).tokenIds.fill(99);
    executor.finish();
    expect(drawn).toStrictEqual(expected);
    executor.close();
  });
});

describe('wrong use is refused, and the step goes on', () => {
  it('of every call but memory while a step is begun', () => {
    const executor = new NativeExecutor(tiny, executorOptions());
    const drawn = output();
    executor.begin(batchOf([1, 2, 3], 0), rows(), drawn);
    expect(() => executor.begin(batchOf([1], 1), rows(), output())).toThrow(RUNNING);
    expect(() => executor.step(batchOf([1], 1), rows(), output())).toThrow(RUNNING);
    expect(() => executor.forward(batchOf([1], 1))).toThrow(RUNNING);
    expect(() => executor.sample(rows(), output())).toThrow(RUNNING);
    expect(() => executor.copyBlocks(Int32Array.of(0), Int32Array.of(1))).toThrow(RUNNING);
    expect(() => executor.profile(true)).toThrow(RUNNING);
    expect(() => executor.close()).toThrow(
      'The executor cannot be closed while a begun step is running; finish() must come first.',
    );
    expect(executor.memory().weightBytes).toBeGreaterThan(0);
    executor.finish();
    const expected = output();
    executor.step(batchOf([1, 2, 3], 1), rows(), expected);
    expect(drawn).toStrictEqual(expected);
    executor.close();
  });

  it('of finish where nothing was begun, before and after a step, and of both once closed', () => {
    const executor = new NativeExecutor(tiny, executorOptions());
    const nothing = 'No step has been begun; begin() must come before finish().';
    expect(() => executor.finish()).toThrow(nothing);
    executor.begin(batchOf([1], 0), rows(), output());
    executor.finish();
    expect(() => executor.finish()).toThrow(nothing);
    executor.close();
    expect(() => executor.begin(batchOf([1], 0), rows(), output())).toThrow('The executor is closed.');
    expect(() => executor.finish()).toThrow('The executor is closed.');
  });

  it('of a batch or an output that is not valid: nothing is begun then', () => {
    const executor = new NativeExecutor(tiny, executorOptions());
    const foreign = { ...batchOf([1, 2], 0), tokenIds: Int32Array.of(1, 4711) };
    expect(() => executor.begin(foreign, rows(), output())).toThrow('4711');
    const noArrays = { ...batchOf([1], 0), slots: [0] as unknown as Int32Array };
    expect(() => executor.begin(noArrays, rows(), output())).toThrow('slots must be an Int32Array.');
    expect(() => executor.begin(batchOf([1], 0), rows(), makeSamplingOutput(0))).toThrow();
    expect(() => executor.begin(null as never, rows(), output())).toThrow('batch must be an object.');
    executor.step(batchOf([1], 0), rows(), output());
    executor.close();
  });
});

describe('a worker that is terminated', () => {
  it('in the middle of a begun step waits for it and takes its threads along', async () => {
    const { plan, weightsFile, tensors, packedFolder } = tiny;
    const instructionSet = bestInstructionSet;
    const options = {
      ...executorOptions({ threads: 3 }),
      maxAttentionWindow: 0,
      sinkTokenLength: 0,
      maxAdapters: 0,
      maxLoraRank: 0,
      plan,
      weightsFile,
      tensors,
      packedFile: join(packedFolder, 'packed-of-begun.bin'),
      instructionSet,
    };
    const script = fileURLToPath(new URL('./begin-worker.mjs', import.meta.url));
    for (let i = 0; i < 6; i++) {
      const workerData = { options, batch: batchOf([1, 2, 3], 0), sampling: rows(), output: output() };
      const worker = new Worker(script, { workerData: { ...workerData, finishes: i % 2 === 0 } });
      await new Promise((resolve, reject) => worker.once('message', resolve).once('error', reject));
      await wait(3 * i);
      await worker.terminate();
    }
  });
});
