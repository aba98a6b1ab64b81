import { describe, expect, it } from 'vitest';
import { BatchMemory } from '../../../engine/backends/batch-memory.js';

const KIB = 2 ** 10;
const MIB = 2 ** 20;

describe('the memory of batches', () => {
  it('is used again for batches of about its size', () => {
    const memory = new BatchMemory(2);
    const buffer = memory.take(5000);
    expect(buffer.byteLength).toBe(8 * KIB);
    memory.give(buffer);
    expect(memory.take(8 * KIB)).toBe(buffer);
    memory.give(buffer);
    expect(memory.take(KIB)).toBe(buffer);
    expect(memory.take(KIB)).not.toBe(buffer);
  });

  it('is not used for batches that are far smaller', () => {
    const memory = new BatchMemory(2);
    const large = memory.take(16 * MIB);
    memory.give(large);
    expect(memory.take(5000).byteLength).toBe(8 * KIB);
    expect(memory.take(2 * MIB)).toBe(large);
  });

  it('of large batches goes when small ones come', () => {
    const memory = new BatchMemory(2);
    for (const buffer of [memory.take(16 * MIB), memory.take(16 * MIB)]) memory.give(buffer);
    expect(memory.keptBytes).toBe(32 * MIB);
    for (const buffer of [memory.take(1), memory.take(1)]) memory.give(buffer);
    expect(memory.keptBytes).toBe(8 * KIB);
  });

  it('is not kept where it is larger than is worth keeping, or was handed on by the model', () => {
    const memory = new BatchMemory(2);
    const huge = memory.take(65 * MIB);
    expect(huge.byteLength).toBe(65 * MIB);
    memory.give(huge);
    memory.give(new ArrayBuffer(0));
    expect(memory.keptBytes).toBe(0);
  });
});
