import { describe, expect, it } from 'vitest';
import type { Beat } from '../../../callbacks/nats/messages.js';
import { offersWanted, WorkerRoster } from '../../../callbacks/nats/worker-roster.js';

const LIMITS = { probeAfterMs: 100, lostAfterMs: 500, untoldAfterMs: 300 };
const beat = (worker: string, more: Partial<Beat> = {}): Beat => ({
  ...{
    kind: 'beat',
    worker,
    pool: 'p',
    places: 4,
    held: 1,
    maxBlocks: 10,
    usedBlocks: 2,
    isLeaving: false,
    isGone: false,
  },
  model: { name: 'm', text: 't' } as Beat['model'],
  ...more,
});

describe('the workers that a gateway knows', () => {
  it('come, go on, leave and go', () => {
    const roster = new WorkerRoster();
    expect(roster.beat(beat('a'), 0)).toBe('joined');
    expect(roster.beat(beat('a'), 1)).toBe('beat');
    expect(roster.takersOf('p')).toHaveLength(1);
    expect(roster.ofModel('t:m')).toHaveLength(1);
    expect(roster.ofModel('u:m')).toHaveLength(0);
    expect(roster.beat(beat('a', { isLeaving: true }), 2)).toBe('leaving');
    expect(roster.takersOf('p')).toEqual([]);
    expect(roster.beat(beat('a', { isGone: true }), 3)).toBe('gone');
    expect(roster.beat(beat('a', { isGone: true }), 4)).toBe('unknown');
  });

  it('are so many at most, and those that are known go on', () => {
    const roster = new WorkerRoster(2);
    expect(['a', 'b', 'c', 'a'].map((id) => roster.beat(beat(id), 0))).toEqual([
      ...['joined', 'joined', 'full', 'beat'],
    ]);
    expect(roster.beat(beat('c', { isGone: true }), 1)).toBe('unknown');
    expect(roster.beat(beat('a', { isGone: true }), 1)).toBe('gone');
    expect(roster.beat(beat('c'), 2)).toBe('joined');
  });

  it('are asked once after a short silence, and are lost after a long one', () => {
    const roster = new WorkerRoster();
    roster.beat(beat('a'), 0);
    roster.beat(beat('b'), 450);
    expect(roster.silent(99, LIMITS)).toEqual({ toProbe: [], lost: [] });
    expect(roster.silent(100, LIMITS)).toEqual({ toProbe: ['a'], lost: [] });
    expect(roster.silent(200, LIMITS)).toEqual({ toProbe: [], lost: [] });
    roster.noteUnanswered('a');
    expect(roster.silent(300, LIMITS)).toEqual({ toProbe: ['a'], lost: [] });
    expect(roster.silent(500, LIMITS)).toEqual({ toProbe: [], lost: ['a'] });
    roster.beginAnew(500);
    expect(roster.silent(599, LIMITS)).toEqual({ toProbe: [], lost: [] });
  });

  it('are reticent if they are heard and do not tell what they have', () => {
    const roster = new WorkerRoster();
    roster.beat(beat('a'), 0);
    roster.beat(beat('a'), 299);
    roster.heard('a', 299);
    expect(roster.reticent(['a', 'unknown'], 299, LIMITS)).toEqual([]);
    expect(roster.reticent(['a'], 300, LIMITS)).toEqual(['a']);
    expect(roster.reticent([], 300, LIMITS)).toEqual([]);
    roster.told('a', 300);
    expect(roster.reticent(['a'], 599, LIMITS)).toEqual([]);
    roster.beginAnew(599);
    expect(roster.reticent(['a'], 898, LIMITS)).toEqual([]);
    expect(roster.reticent(['a'], 899, LIMITS)).toEqual(['a']);
  });

  it('want as many offers as they have free places, and one more each', () => {
    const roster = new WorkerRoster();
    roster.beat(beat('a', { places: 4, held: 1 }), 0);
    roster.beat(beat('b', { places: 2, held: 5 }), 0);
    expect(offersWanted(roster.takersOf('p'))).toBe(3 + 1 + 0 + 1);
    roster.noteHeld('a', 1);
    expect(offersWanted(roster.takersOf('p'))).toBe(4);
    roster.noteHeld('a', -1);
    expect(offersWanted([])).toBe(0);
  });
});
