import { describe, expect, it } from 'vitest';
import { ReasoningBudget } from '../../../engine/decoding/reasoning-budget.js';

const [END, BEGIN] = [7, 3];
const VOCAB = 10;
const PROMPT = [1, BEGIN, END, 2];

/** Numbers of generated tokens after which the end is forced, for an answer of these tokens. */
function forcedBehind(tokens: number, generated: readonly number[], beginToken = -1): number[] {
  const budget = new ReasoningBudget({ tokens, endToken: END, beginToken }, VOCAB);
  const sequence = Int32Array.of(...PROMPT, ...generated);
  const forced = [];
  for (let length = 0; length <= generated.length; length++) {
    const bias = budget.biasBehind(sequence, PROMPT.length, PROMPT.length + length);
    if (bias === null) continue;
    expect(bias.tokens).toBe(null);
    expect([...bias.values]).toEqual(
      Array.from({ length: VOCAB }, (_, token) => (token === END ? 0 : -Infinity)),
    );
    forced.push(length);
  }
  return forced;
}

describe('a budget of reasoning', () => {
  it('forces its end behind so many tokens of an answer that begins within it', () => {
    expect(forcedBehind(3, [1, 1, 1])).toEqual([3]);
    expect(forcedBehind(0, [])).toEqual([0]);
    expect(forcedBehind(3, [1, 1])).toEqual([]);
  });

  it('forces nothing behind an end, be it forced or not', () => {
    expect(forcedBehind(3, [1, 1, 1, END, 1, 1, 1, 1, 1])).toEqual([3]);
    expect(forcedBehind(3, [1, END, 1, 1, 1, 1, 1])).toEqual([]);
    expect(forcedBehind(0, [END, 1, 1])).toEqual([0]);
  });

  it('counts from the token that begins it, near the beginning of the answer', () => {
    expect(forcedBehind(2, [1, BEGIN, 1, 1, END, 1, 1], BEGIN)).toEqual([4]);
    expect(forcedBehind(0, [BEGIN], BEGIN)).toEqual([1]);
    expect(forcedBehind(2, [1, 1, 1, 1], BEGIN)).toEqual([]);
    expect(forcedBehind(1, [...new Array(15).fill(1), BEGIN, 1], BEGIN)).toEqual([17]);
    expect(forcedBehind(1, [...new Array(16).fill(1), BEGIN, 1], BEGIN)).toEqual([]);
  });
});
