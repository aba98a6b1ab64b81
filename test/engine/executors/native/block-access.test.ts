import { afterAll, describe, expect, it } from 'vitest';
import { NativeExecutor } from '../../../../engine/executors/native/native-executor.js';
import { kvBytesPerBlock } from '../../../../kvcache/kv-cache-size.js';
import { makeSamplingBatch, makeSamplingOutput } from '../../../../tools/support/sampling-rows.js';
import { makeStepBatch } from '../../../../tools/support/step-batch.js';
import { TinyNetworks } from '../../../../tools/support/tiny-network.js';
import { executorOptions } from '../../../support/native-options.js';
import { expectRefusedMoves } from '../../../support/refused-moves.js';

const networks = new TinyNetworks();
afterAll(() => networks.remove());

const TOKENS = Array.from({ length: 45 }, (_, i) => (i * 7) % 60);
const SIZE = 16;

function batchOf(
  tiny: ReturnType<TinyNetworks['make']>,
  cached: number,
  blocks: number[],
  newBlocks: number[],
) {
  const { inverseFrequencies } = tiny;
  return makeStepBatch([{ tokens: TOKENS, cached, blocks }], {
    tokensPerBlock: SIZE,
    inverseFrequencies,
    newBlocks,
  });
}

describe('the content of blocks', () => {
  const uneven = { ownHeads: [{ headDim: 12, numKvHeads: 4 }], numLayers: 3 };
  it.each([
    { kvDtype: 'f32', shape: {} },
    { kvDtype: 'bf16', shape: {} },
    { kvDtype: 'int8', shape: {} },
    { kvDtype: 'bf16', shape: uneven },
  ] as const)('in $kvDtype goes to another executor, to the bit: $shape', ({ kvDtype, shape }) => {
    const tiny = networks.make({ headDim: 10, ...shape });
    const open = (more = {}) => new NativeExecutor(tiny, executorOptions({ kvDtype, ...more }));
    const [from, to] = [open(), open({ threads: 1, numBlocks: 9, numSecondaryBlocks: 1 })];
    const expected = from.forward(batchOf(tiny, 0, [40, 3, 17], [40, 3, 17])).slice();
    const { bytesPerBlock, readBlocks } = from.blockAccess!;
    expect(bytesPerBlock).toBe(kvBytesPerBlock(tiny.plan.caches, SIZE, kvDtype));
    const bytes = new Uint8Array(2 * bytesPerBlock);
    readBlocks(Int32Array.of(40, 3), bytes);
    // By way of a block of the secondary pool.
    to.blockAccess!.writeBlocks(Int32Array.of(9, 2), bytes);
    to.copyBlocks(Int32Array.of(9), Int32Array.of(5));
    expect(to.areFinite(Int32Array.of(5, 2))).toBe(true);
    const again = new Uint8Array(2 * bytesPerBlock);
    to.blockAccess!.readBlocks(Int32Array.of(5, 2), again);
    expect(Buffer.compare(again, bytes)).toBe(0);
    expect(to.forward(batchOf(tiny, 32, [5, 2, 7], [7])).slice()).toEqual(expected);
    for (const executor of [from, to]) executor.close();
  });

  it('is refused for other blocks, other lengths and other types, and while a step runs', () => {
    const tiny = networks.make();
    const executor = new NativeExecutor(tiny, executorOptions());
    const { bytesPerBlock, readBlocks, writeBlocks } = executor.blockAccess!;
    const block = new Uint8Array(bytesPerBlock);
    expectRefusedMoves(executor.blockAccess!);
    executor.begin(batchOf(tiny, 0, [1, 2, 3], [1, 2, 3]), makeSamplingBatch([{}]), makeSamplingOutput(1));
    for (const move of [readBlocks, writeBlocks])
      expect(() => move(Int32Array.of(1), block)).toThrow('A begun step is running');
    executor.finish();
    executor.close();
    expect(() => readBlocks(Int32Array.of(1), block)).toThrow('The executor is closed.');
  });
});
