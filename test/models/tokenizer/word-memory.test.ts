import { describe, expect, it } from 'vitest';
import { WordMemory } from '../../../models/tokenizer/word-memory.js';

describe('a memory of words', () => {
  it('knows words with one id and with several', () => {
    const memory = new WordMemory();
    memory.set('a', 1);
    memory.set('a longer word than thirteen', [2, 3]);
    expect(memory.get('a')).toBe(1);
    expect(memory.get('a longer word than thirteen')).toEqual([2, 3]);
    expect(memory.get('b')).toBeUndefined();
  });

  it('does not take long words, or words of many ids', () => {
    const memory = new WordMemory();
    memory.set('x'.repeat(65), 1);
    memory.set('\u{10ffff}'.repeat(20), new Array(17).fill(1));
    expect(memory.size).toBe(0);
    memory.set('x'.repeat(64), new Array(16).fill(1));
    expect(memory.size).toBe(1);
  });

  it('is bounded, and keeps the words that are asked for', () => {
    const memory = new WordMemory();
    memory.set('kept', 7);
    let most = 0;
    for (let i = 0; i < 100_000; i++) {
      memory.set(`word ${i}`, i);
      if (memory.get('kept') !== 7) throw new Error(`It was forgotten at word ${i}.`);
      most = Math.max(most, memory.size);
    }
    expect(most).toBeLessThanOrEqual(16_384);
    expect(memory.get('word 99999')).toBe(99_999);
    expect(memory.get('word 0')).toBeUndefined();
  });
});
