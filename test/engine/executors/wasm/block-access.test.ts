import { afterAll, describe, expect, it } from 'vitest';
import { PortableExecutor } from '../../../../engine/executors/portable/portable-executor.js';
import { openWasmRunner } from '../../../../engine/executors/wasm/open-wasm-runner.js';
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

type Tiny = ReturnType<TinyNetworks['make']>;

function batchOf({ inverseFrequencies }: Tiny, cached: number, blocks: number[], newBlocks: number[]) {
  const options = { tokensPerBlock: SIZE, inverseFrequencies, newBlocks };
  return makeStepBatch([{ tokens: TOKENS, cached, blocks }], options);
}

const open = (tiny: Tiny, more = {}) =>
  PortableExecutor.open(tiny, executorOptions({ kvDtype: 'f32', ...more }), openWasmRunner);

describe('the content of blocks of the wasm executor', () => {
  it.each([{ headDim: 10 }, { varied: true }])('goes to another one, to the bit: %o', async (shape) => {
    const tiny = networks.make(shape);
    const [from, to] = [await open(tiny), await open(tiny, { numBlocks: 9, numSecondaryBlocks: 1 })];
    const expected = from.forward(batchOf(tiny, 0, [40, 3, 17], [40, 3, 17])).slice();
    const { bytesPerBlock, readBlocks } = from.blockAccess!;
    expect(bytesPerBlock).toBe(kvBytesPerBlock(tiny.plan.caches, SIZE, 'f32'));
    const bytes = new Uint8Array(2 * bytesPerBlock);
    readBlocks(Int32Array.of(40, 3), bytes);
    // By way of a block of the secondary pool.
    to.blockAccess!.writeBlocks(Int32Array.of(9, 2), bytes);
    to.copyBlocks(Int32Array.of(9), Int32Array.of(5));
    const again = new Uint8Array(2 * bytesPerBlock);
    to.blockAccess!.readBlocks(Int32Array.of(5, 2), again);
    expect(Buffer.compare(again, bytes)).toBe(0);
    // A prefix that is there gives the bits of a prompt that is computed after the same prefix.
    const local = from.forward(batchOf(tiny, 32, [40, 3, 17], [17])).slice();
    expect(to.forward(batchOf(tiny, 32, [5, 2, 7], [7])).slice()).toEqual(local);
    expect(local).toHaveLength(expected.length);
    for (const executor of [from, to]) executor.close();
  });

  it('is refused for other blocks, other lengths and other types, and while a step runs', async () => {
    const tiny = networks.make();
    const executor = await open(tiny);
    const { bytesPerBlock, readBlocks, writeBlocks } = executor.blockAccess!;
    const block = new Uint8Array(bytesPerBlock);
    expectRefusedMoves(executor.blockAccess!);
    executor.begin(batchOf(tiny, 0, [1, 2, 3], [1, 2, 3]), makeSamplingBatch([{}]), makeSamplingOutput(1));
    for (const move of [readBlocks, writeBlocks])
      expect(() => move(Int32Array.of(1), block)).toThrow('begun');
    executor.finish();
    executor.close();
    expect(() => readBlocks(Int32Array.of(1), block)).toThrow('closed');
  });
});
