import { describe, expect, it } from 'vitest';
import { takeRounds } from '../../../tools/support/take-rounds.js';

async function order(sides: readonly string[], rounds: number): Promise<string> {
  const turns: string[] = [];
  await takeRounds(sides, rounds, async (side, round) => {
    await Promise.resolve();
    turns.push(`${side}${round}`);
  });
  return turns.join(' ');
}

describe('takeRounds', () => {
  it('turns the order of the sides round every second time', async () => {
    expect(await order(['a', 'b', 'c'], 3)).toBe('a0 b0 c0 c1 b1 a1 a2 b2 c2');
  });

  it('does nothing without rounds or sides', async () => {
    expect(await order(['a'], 0)).toBe('');
    expect(await order([], 2)).toBe('');
  });

  it('ends with the first turn that fails', async () => {
    const seen: string[] = [];
    const run = takeRounds(['a', 'b'], 2, (side) => {
      seen.push(side);
      if (side === 'b') throw new Error('b fails');
    });
    await expect(run).rejects.toThrow('b fails');
    expect(seen).toEqual(['a', 'b']);
  });
});
