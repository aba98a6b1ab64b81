import { describe, expect, it } from 'vitest';
import { RowTrials } from '../../../engine/speculation/row-trials.js';

const candidate = (acceptance: number, most = 8, drawn = false) => ({ acceptance, most, drawn });
const times = <T>(count: number, value: T): T[] => Array.from({ length: count }, () => value);

/** Numbers of the steps, from 1 on, after which a trial was due. */
function dueSteps(trials: RowTrials, steps: number): number[] {
  return Array.from({ length: steps }, (_, i) => (trials.noteStep() ? i + 1 : 0)).filter((step) => step > 0);
}

describe('RowTrials', () => {
  it('come less and less often while they show no gain', () => {
    expect(dueSteps(new RowTrials(), 6000)).toEqual([8, 24, 56, 120, 248, 504, 1016, 2040, 3064, 4088, 5112]);
  });

  it('come soon again after drafts have paid', () => {
    const trials = new RowTrials();
    dueSteps(trials, 1000);
    trials.notePaying();
    expect(dueSteps(trials, 30)).toEqual([8, 24]);
  });

  it('draft a few tokens for each sequence that has likely ones', () => {
    const candidates = [candidate(0.9), candidate(0.9, 2), candidate(0.5), candidate(0.9, 0)];
    expect(new RowTrials().lengths(candidates, { spareRows: 100 })).toEqual([3, 2, 0, 0]);
  });

  it('leave the draft model alone, whose tokens are not there yet', () => {
    expect(new RowTrials().lengths([candidate(0.9, 8, true), candidate(0.9)], { spareRows: 100 })).toEqual([
      0, 3,
    ]);
  });

  it('are for nothing where few sequences have likely tokens', () => {
    const few = [candidate(0.9), ...times(7, candidate(0.4))];
    expect(new RowTrials().lengths(few, { spareRows: 100 })).toEqual(times(8, 0));
    const more = [candidate(0.9), candidate(0.9), candidate(0.9), ...few];
    expect(new RowTrials().lengths(more, { spareRows: 100 }).filter((length) => length > 0)).toEqual([
      3, 3, 3, 3,
    ]);
    expect(new RowTrials().lengths([], { spareRows: 100 })).toEqual([]);
  });

  it('share the room that there is', () => {
    expect(new RowTrials().lengths(times(4, candidate(0.9)), { spareRows: 9 })).toEqual([2, 2, 2, 2]);
    expect(new RowTrials().lengths(times(4, candidate(0.9)), { spareRows: 3 })).toEqual([0, 0, 0, 0]);
  });
});
