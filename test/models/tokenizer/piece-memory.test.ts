import { describe, expect, it } from 'vitest';
import { PieceMemory } from '../../../models/tokenizer/piece-memory.js';

const ids = (...all: number[]) => Int32Array.from(all);

describe('a memory of pieces', () => {
  it('knows their ids, none included', () => {
    const memory = new PieceMemory();
    memory.set('a piece', ids(1, 2, 3));
    memory.set('another', ids(4));
    memory.set('nothing', ids());
    expect(memory.get('a piece')).toEqual(ids(1, 2, 3));
    expect(memory.get('another')).toEqual(ids(4));
    expect(memory.get('nothing')).toEqual(ids());
    expect(memory.get('a third')).toBeUndefined();
  });

  it('is bounded, and keeps the pieces that are asked for', () => {
    const memory = new PieceMemory({ maxUnits: 1000 });
    memory.set('kept', ids(7, 8));
    for (let i = 0; i < 5000; i++) {
      memory.set(`piece ${i}`, ids(i, i + 1, i + 2));
      if (memory.get('kept')?.join() !== '7,8') throw new Error(`It was forgotten at piece ${i}.`);
      expect(memory.units).toBeLessThanOrEqual(2000);
    }
    expect(memory.get('piece 4999')).toEqual(ids(4999, 5000, 5001));
    expect(memory.get('piece 0')).toBeUndefined();
  });

  it('counts ids where they are more than units, and takes nothing that would need half of it', () => {
    const memory = new PieceMemory({ maxUnits: 100 });
    memory.set('x', new Int32Array(40));
    expect(memory.units).toBe(40);
    memory.set('y', new Int32Array(51));
    memory.set('z'.repeat(51), ids(1));
    expect(memory.units).toBe(40);
    expect(memory.get('y')).toBeUndefined();
  });
});
