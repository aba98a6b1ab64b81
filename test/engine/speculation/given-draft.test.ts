import { describe, expect, it } from 'vitest';
import { GivenDraft } from '../../../engine/speculation/given-draft.js';

describe('GivenDraft', () => {
  const prompt = [1, 2, 3];
  const rest = (draft: GivenDraft, ...generated: number[]) =>
    Array.from(draft.rest(Int32Array.of(...prompt, ...generated, 99), 3, 3 + generated.length));

  it('is what is left of it as long as what was generated is its beginning', () => {
    const draft = new GivenDraft(Int32Array.of(5, 7, 9, 4));
    expect(rest(draft)).toEqual([5, 7, 9, 4]);
    expect(rest(draft, 5)).toEqual([7, 9, 4]);
    expect(rest(draft, 5, 7, 9)).toEqual([4]);
    expect(rest(draft, 5, 7, 9, 4)).toEqual([]);
    expect(rest(draft, 5, 7, 9, 4, 1)).toEqual([]);
  });

  it('is over with the first token that differs, also after a pause', () => {
    const draft = new GivenDraft(Int32Array.of(5, 7, 9, 4));
    expect(rest(draft, 5, 8)).toEqual([]);
    expect(rest(draft, 5, 8, 9)).toEqual([]);
    const paused = new GivenDraft(Int32Array.of(5, 7, 9, 4));
    expect(rest(paused, 5, 7, 9)).toEqual([4]);
    expect(rest(paused, 5)).toEqual([7, 9, 4]);
  });
});
