import { describe, expect, it } from 'vitest';
import { RecentPrompts } from '../../../../src/server/answering/recent-prompts.js';

/** Words that look drawn. */
const words = (count: number, seed: number) =>
  Array.from({ length: count }, (_, i) => (Math.imul(i + 100_000 * seed, 2654435761) >>> 8) % 50_000);
const head = words(100, 1);
const rest = words(4000, 2);
const of = 'model ';

describe('recent prompts', () => {
  it('say nothing of a turn that adds to the one before, nor of other texts', () => {
    const recent = new RecentPrompts();
    expect(recent.note(of, [...head, ...rest])).toBeNull();
    expect(recent.note(of, [...head, ...rest, ...words(500, 3)])).toBeNull();
    expect(recent.note(of, [...head, ...words(4000, 4)])).toBeNull();
    expect(recent.note(of, [])).toBeNull();
    expect(recent.note(of, [7])).toBeNull();
  });

  it('say where a prompt parts from an earlier one, and how much of the rest it repeats, moved or not', () => {
    for (const changed of [[1, 2, 3], [1, 2, 3, 4, 5], []]) {
      const recent = new RecentPrompts();
      recent.note(of, [...head, 9, 9, 9, ...rest]);
      const prompt = [...head, ...changed, ...rest, ...words(1000, 5)];
      const parting = recent.note(of, prompt)!;
      expect(parting).toMatchObject({ at: 100, promptTokens: prompt.length });
      expect(parting.repeated).toBeGreaterThan(3600);
      expect(parting.repeated).toBeLessThan(4400);
      // It is remembered too, and the next turn continues it.
      expect(recent.note(of, [...prompt, 5, 6])).toBeNull();
    }
  });

  it('count what stands before the parting in another prompt as found', () => {
    const recent = new RecentPrompts();
    recent.note(of, [...head, ...rest]);
    recent.note(of, [...words(10, 6), ...rest]);
    expect(recent.note(of, [...head, ...rest.slice(0, 3000), ...words(300, 7)])).toBeNull();
  });

  it('compare no prompts of others', () => {
    const recent = new RecentPrompts();
    recent.note('model 1', [...head, 9, ...rest]);
    expect(recent.note('model 2', [...head, ...rest])).toBeNull();
    expect(recent.note('model 1', [...head, ...rest])).toMatchObject({ at: 100 });
  });

  it('remember the last 32, and about a million tokens of them', () => {
    const recent = new RecentPrompts();
    recent.note(of, [...head, 9, ...rest]);
    for (let i = 0; i < 31; i++) recent.note('other', [i]);
    expect(recent.note(of, [...head, ...rest])).not.toBeNull();
    for (let i = 0; i < 32; i++) recent.note('other', [i, i]);
    expect(recent.note(of, [...head, 8, ...rest])).toBeNull();

    recent.note('long', new Int32Array(2 ** 20 - 10));
    expect(recent.note(of, [...head, 7, ...rest])).toBeNull();
  });

  it('take a moment for the longest prompts', () => {
    const recent = new RecentPrompts();
    const long = Int32Array.from({ length: 2 ** 20 }, (_, i) => Math.imul(i, 2654435761) & 0xffff);
    recent.note(of, long);
    const changed = long.slice();
    changed[3] = -1;
    expect(recent.note(of, changed)!.at).toBe(3);
  });
});
