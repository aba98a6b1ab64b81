import { afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { WasmHeap } from '../../../../engine/executors/wasm/heap.js';
import { openWasmRunner } from '../../../../engine/executors/wasm/open-wasm-runner.js';
import { makeStepBatch } from '../../../../tools/support/step-batch.js';
import { makeTinyNetwork, type TinyNetwork } from '../../../../tools/support/tiny-network.js';
import { executorOptions } from '../../../support/native-options.js';
import { SteppedRunner } from '../../../support/wasm-runner.js';

let tiny: TinyNetwork;
beforeAll(() => {
  tiny = makeTinyNetwork({ numLayers: 1, hiddenSize: 16, intermediateSize: 16, headDim: 8, vocabSize: 32 });
  return () => tiny.remove();
});
afterEach(() => vi.restoreAllMocks());

/** A context of `length` tokens and a generation row after 9. */
function batch(length: number) {
  const { inverseFrequencies } = tiny;
  const tokens = Array.from({ length }, (_, i) => i % 32);
  return makeStepBatch(
    [
      { tokens, cached: 0, blocks: [0, 1] },
      { tokens: tokens.slice(0, 10), cached: 9, blocks: [2] },
    ],
    { tokensPerBlock: 16, inverseFrequencies, newBlocks: [0, 1] },
  );
}

describe('memory', () => {
  it('stays what it was over 10,000 steps: the heap, its tensors, and what is free in it', async () => {
    const opening = vi.spyOn(WasmHeap, 'open');
    const executor = await SteppedRunner.open(tiny);
    const heap = await opening.mock.results[0]!.value;
    const batches = [10, 11, 12, 13, 20, 32].map(batch);
    for (const each of batches) executor.forward(each);
    /** Places of the next pieces taken from the heap: a single byte less free would move one of them. */
    const free = () => {
      const pieces = [16, 64, 1024, 1 << 16].map((bytes) => heap.take(bytes)!);
      for (const piece of pieces) heap.giveBack(piece);
      return pieces;
    };
    const before = { free: free(), bytes: heap.bytes, tensorsMade: heap.tensorsMade };
    for (let step = 0; step < 10_000; step++) executor.forward(batches[step % batches.length]!);
    expect({ free: free(), bytes: heap.bytes, tensorsMade: heap.tensorsMade }).toEqual(before);
  });

  it('is what memory() says, in f32', async () => {
    const options = executorOptions({ numBlocks: 5, numSecondaryBlocks: 2 });
    const { weightBytes, kvCacheBytes, workspaceBytes } = (await openWasmRunner(tiny, options)).memory();
    const numbers = tiny.plan.weights.reduce((sum, { rows, columns }) => sum + rows * columns, 0);
    // The embedding twice, once packed as the output layer; biases and roundings in addition.
    expect(weightBytes).toBeGreaterThan(4 * (numbers + 32 * 16));
    expect(weightBytes).toBeLessThan(2 * 4 * numbers);
    expect(kvCacheBytes).toBe(7 * 16 * 2 * 2 * 8 * 4);
    expect(workspaceBytes).toBeGreaterThan(0);
  });

  it('that no heap can hold is refused with the numbers', async () => {
    const options = executorOptions({ numBlocks: 2_200_000 });
    await expect(openWasmRunner(tiny, options)).rejects.toThrow(
      /^The wasm executor would take 4\d\d\d MiB \(weights as f32 1 MiB, KV cache 4297 MiB, workspace \d MiB\), but a heap of WebAssembly holds 4096 MiB at most; take a smaller model, a smaller KV cache or the native executor\.$/,
    );
  });

  it('that the machine does not give is told in a sentence', async () => {
    vi.spyOn(WasmHeap.prototype, 'take').mockReturnValue(null);
    await expect(openWasmRunner(tiny, executorOptions())).rejects.toThrow(
      /^The wasm executor could not take \d+ bytes: .*the machine gives no more\.$/,
    );
  });
});

describe('what it refuses', () => {
  it('a cache in bf16, and blocks that are no whole panels of keys', async () => {
    await expect(openWasmRunner(tiny, executorOptions({ kvDtype: 'bf16' }))).rejects.toThrow(
      'The wasm executor keeps the KV cache as f32, but kvDtype is bf16.',
    );
    await expect(openWasmRunner(tiny, executorOptions({ tokensPerBlock: 4 }))).rejects.toThrow(
      'The wasm executor needs tokensPerBlock to be a multiple of 8, but it is 4.',
    );
  });

  it('calls after close', async () => {
    const runner = await openWasmRunner(tiny, executorOptions());
    runner.close();
    expect(() => runner.forward(batch(3))).toThrow('This wasm executor has been closed.');
  });
});

describe('the process', () => {
  it('keeps its listeners', async () => {
    const events = ['uncaughtException', 'unhandledRejection'];
    const before = events.map((event) => process.listeners(event as 'uncaughtException'));
    await WasmHeap.open();
    expect(events.map((event) => process.listeners(event as 'uncaughtException'))).toEqual(before);
  });
});
