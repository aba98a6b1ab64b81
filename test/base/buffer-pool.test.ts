import { describe, expect, it } from 'vitest';
import { BufferPool } from '../../base/buffer-pool.js';

const KIB = 2 ** 10;
const MIB = 2 ** 20;

describe('a pool of buffers', () => {
  it('hands one out again for what is of about its size', () => {
    const pool = new BufferPool({ maxKept: 2 });
    const buffer = pool.take(5000);
    expect(buffer.byteLength).toBe(8 * KIB);
    pool.give(buffer);
    expect(pool.take(8 * KIB)).toBe(buffer);
    pool.give(buffer);
    expect(pool.take(KIB)).toBe(buffer);
    expect(pool.take(KIB)).not.toBe(buffer);
  });

  it('hands out none for what is far smaller', () => {
    const pool = new BufferPool({ maxKept: 2 });
    const large = pool.take(16 * MIB);
    pool.give(large);
    expect(pool.take(5000).byteLength).toBe(8 * KIB);
    expect(pool.take(2 * MIB)).toBe(large);
  });

  it('drops large ones when small ones come', () => {
    const pool = new BufferPool({ maxKept: 2 });
    for (const buffer of [pool.take(16 * MIB), pool.take(16 * MIB)]) pool.give(buffer);
    expect(pool.keptBytes).toBe(32 * MIB);
    for (const buffer of [pool.take(1), pool.take(1)]) pool.give(buffer);
    expect(pool.keptBytes).toBe(8 * KIB);
  });

  it('keeps none that is larger than is worth keeping, or that was handed on', () => {
    const pool = new BufferPool({ maxKept: 2 });
    const huge = pool.take(65 * MIB);
    expect(huge.byteLength).toBe(65 * MIB);
    pool.give(huge);
    pool.give(new ArrayBuffer(0));
    expect(pool.keptBytes).toBe(0);
  });

  it('keeps no more bytes than it may', () => {
    const pool = new BufferPool({ maxKept: 9, maxKeptBytes: 3 * MIB });
    for (const buffer of [MIB, MIB, 2 * MIB].map((bytes) => pool.take(bytes))) pool.give(buffer);
    expect(pool.keptBytes).toBe(3 * MIB);
    pool.give(pool.take(4 * MIB));
    expect(pool.keptBytes).toBe(0);
  });
});
