import { expect } from 'vitest';
import type { BlockAccess } from '../../engine/executors/executor.js';

/** Executors of 64 blocks refuse to read or write other blocks, other lengths and other types. */
export function expectRefusedMoves({ bytesPerBlock, readBlocks, writeBlocks }: BlockAccess): void {
  const block = new Uint8Array(bytesPerBlock);
  for (const move of [readBlocks, writeBlocks]) {
    expect(() => move(Int32Array.of(64), block)).toThrow('blocks[0] is 64');
    expect(() => move(Int32Array.of(-1), block)).toThrow('blocks[0] is -1');
    expect(() => move(Int32Array.of(1), block.subarray(1))).toThrow(
      `has ${bytesPerBlock - 1} bytes; 1 blocks of ${bytesPerBlock} bytes are expected.`,
    );
    expect(() => move(Int32Array.of(1), new Float32Array(4) as never)).toThrow('must be a Uint8Array');
    expect(() => move([1] as never, block)).toThrow('blocks must be an Int32Array');
    move(new Int32Array(0), new Uint8Array(0));
  }
}
