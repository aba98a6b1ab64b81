import { describe, expect, it } from 'vitest';
import type { Beat } from '../../../cluster/nats/beat.js';
import { offersFor, WorkerRoster } from '../../../cluster/nats/worker-roster.js';

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
      ...['joined', 'joined', 'refused', 'beat'],
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
    roster.beat(beat('a'), 200);
    roster.heard('a', 299);
    expect(roster.reticent(['a', 'unknown'], LIMITS)).toEqual([]);
    roster.beat(beat('a'), 300);
    expect(roster.reticent(['a'], LIMITS)).toEqual(['a']);
    expect(roster.reticent([], LIMITS)).toEqual([]);
    roster.told('a', 300);
    // One that is silent is another matter: see above.
    expect(roster.reticent(['a'], LIMITS)).toEqual([]);
    roster.beginAnew(599);
    roster.heard('a', 898);
    expect(roster.reticent(['a'], LIMITS)).toEqual([]);
    roster.heard('a', 899);
    expect(roster.reticent(['a'], LIMITS)).toEqual(['a']);
  });

  it('want as many offers as they have free places, and one more each', () => {
    const roster = new WorkerRoster();
    roster.beat(beat('a', { places: 4, held: 1 }), 0);
    roster.beat(beat('b', { places: 2, held: 5 }), 0);
    expect(roster.takersOf('p').map(offersFor)).toEqual([3 + 1, 0 + 1]);
    roster.noteHeld('a', 1);
    expect(roster.takersOf('p').map(offersFor)).toEqual([2 + 1, 0 + 1]);
    roster.noteHeld('a', -1);
  });
});

describe('a roster that strangers fill', () => {
  const stranger = (worker: string, pool: string): Beat =>
    ({
      ...{ kind: 'beat', worker, pool, model: { name: 'm', text: pool }, places: 1, held: 0 },
      ...{ maxBlocks: 1, usedBlocks: 0, isLeaving: false, isGone: false },
    }) as unknown as Beat;

  it('knows so many pools and workers, one card for each pool, and forgets them with their workers', () => {
    const roster = new WorkerRoster();
    for (let i = 0; i < 512; i++) expect(roster.beat(stranger(`a${i}`, `p${i}`), 0)).toBe('joined');
    expect(roster.beat(stranger('b', 'other'), 0)).toBe('refused');
    expect(roster.beat(stranger('b', 'p3'), 0)).toBe('joined');
    expect(roster.find('b')!.model).toBe(roster.find('a3')!.model);
    roster.remove('a7');
    expect(roster.beat(stranger('c', 'other'), 0)).toBe('joined');
    // One that changes its pool leaves the other.
    expect(roster.beat(stranger('c', 'p7'), 0)).toBe('refused');
    expect(roster.beat(stranger('c', 'p8'), 0)).toBe('beat');
    expect(roster.beat(stranger('d', 'p7'), 0)).toBe('joined');
    for (let i = roster.list().length; i < 20_000; i++) roster.beat(stranger(`e${i}`, 'p1'), 0);
    expect(roster.beat(stranger('f', 'p1'), 0)).toBe('refused');
    expect(roster.beat(stranger('d', 'p7'), 0)).toBe('beat');
    expect(roster.beat({ ...stranger('d', 'p7'), isGone: true }, 0)).toBe('gone');
    expect(roster.beat(stranger('f', 'p1'), 0)).toBe('joined');
  });
});
