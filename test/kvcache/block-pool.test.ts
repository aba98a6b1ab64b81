import { describe, expect, it } from 'vitest';
import { BlockPool } from '../../kvcache/block-pool.js';

describe('BlockPool', () => {
  it('hands out every block once, from 0 on', () => {
    const pool = new BlockPool(4);
    expect(Array.from({ length: 4 }, () => pool.take())).toEqual([0, 1, 2, 3]);
    expect(pool.freeBlocks).toBe(0);
  });

  it('says so when it is asked for more than it has', () => {
    const pool = new BlockPool(1);
    pool.take();
    expect(() => pool.take()).toThrow(
      'All 1 KV cache blocks are taken; the caller has to ask freeBlocks first.',
    );
  });

  it('refuses a release by nobody', () => {
    const pool = new BlockPool(2);
    const block = pool.take();
    pool.release(block);
    expect(() => pool.release(block)).toThrow('KV cache block 0 is released, but no sequence holds it.');
    expect(() => pool.release(2)).toThrow('KV cache block 2 is released, but no sequence holds it.');
    expect(pool.freeBlocks).toBe(2);
  });
});
