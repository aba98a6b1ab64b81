import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Beat, ModelCard } from '../../../cluster/nats/beat.js';
import { WorkerRoster } from '../../../cluster/nats/worker-roster.js';
import { draws } from '../../support/scale.js';
import { SlowRoster } from './slow-roster.js';

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
  model: { name: 'm', text: 't' } as ModelCard,
  ...more,
});

describe('the workers that a gateway knows', () => {
  it('come, go on, leave and go', () => {
    const roster = new WorkerRoster();
    expect(roster.beat(beat('a'), 0)).toBe('joined');
    expect(roster.beat(beat('a'), 1)).toBe('beat');
    expect(roster.hasTakers('p')).toBe(true);
    expect(roster.numTakersOf('t:m')).toBe(1);
    expect(roster.numTakersOf('u:m')).toBe(0);
    expect(roster.beat(beat('a', { isLeaving: true }), 2)).toBe('leaving');
    expect(roster.hasTakers('p')).toBe(false);
    expect(roster.poolsOf('t:m')).toHaveLength(1);
    expect(roster.beat(beat('a', { isGone: true }), 3)).toBe('gone');
    expect(roster.beat(beat('a', { isGone: true }), 4)).toBe('unknown');
  });

  it('are so many at most, and those that are known go on', () => {
    const roster = new WorkerRoster({ maxWorkers: 2 });
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
    const reticent = (nowMs: number, ...holders: string[]) =>
      roster.reticent(nowMs, LIMITS, (id) => holders.includes(id));
    roster.beat(beat('a'), 0);
    const worker = roster.find('a')!;
    roster.told(worker, 0);
    roster.beat(beat('a'), 200);
    roster.heard(worker, 299);
    expect(reticent(299, 'a')).toEqual([]);
    roster.beat(beat('a'), 300);
    expect(reticent(300, 'a')).toEqual(['a']);
    roster.told(worker, 300);
    // One that is silent is another matter: see above.
    expect(reticent(700, 'a')).toEqual([]);
    roster.beginAnew(599);
    roster.heard(worker, 898);
    expect(reticent(898, 'a')).toEqual([]);
    roster.heard(worker, 899);
    expect(reticent(899, 'a')).toEqual(['a']);
    // Without requests it has nothing to report, until it gets one.
    expect(reticent(899)).toEqual([]);
    roster.told(worker, 1000);
    roster.heard(worker, 1300);
    expect(reticent(1300, 'a')).toEqual(['a']);
  });

  it('want as many offers as they have free places, and one more each', () => {
    const roster = new WorkerRoster();
    roster.beat(beat('a', { places: 4, held: 1 }), 0);
    roster.beat(beat('b', { places: 2, held: 5 }), 0);
    const { sums } = roster.pool('p')!;
    expect(sums).toMatchObject({ offers: 3 + 1 + 0 + 1, free: 3 });
    roster.noteHeld(roster.find('a')!, 1);
    expect(sums).toMatchObject({ offers: 2 + 1 + 0 + 1, free: 2 });
    roster.noteHeld(roster.find('a')!, -1);
    roster.beat(beat('a', { isLeaving: true }), 1);
    expect(sums).toMatchObject({ offers: 1, free: 0 });
  });

  it('tell their card once for all of a pool, and are left out until somebody has', () => {
    const roster = new WorkerRoster();
    const { model: _, ...bare } = beat('a');
    expect(roster.beat(bare, 0)).toBe('cardless');
    expect(roster.find('a')).toBeUndefined();
    expect(roster.beat(beat('b'), 1)).toBe('joined');
    expect(roster.beat(bare, 2)).toBe('joined');
    expect(roster.find('a')!.pool).toBe(roster.find('b')!.pool);
    roster.remove('b');
    expect(roster.beat(bare, 3)).toBe('beat');
    expect(roster.beat({ ...bare, pool: 'q' }, 4)).toBe('cardless');
    expect(roster.find('a')!.pool.name.fingerprint).toBe('p');
    expect(roster.beat({ ...bare, isGone: true }, 5)).toBe('gone');
    expect(roster.beat(bare, 6)).toBe('cardless');
  });

  it('are summed up as if all of them were counted, in random histories', () => {
    const changes = fc.record({
      ...{ worker: fc.nat(5), pool: fc.nat(2), isWhole: fc.boolean(), places: fc.nat(4), held: fc.nat(5) },
      ...{ maxBlocks: fc.nat(3), usedBlocks: fc.nat(3), layout: fc.option(fc.nat(1)) },
      ...{ cacheNumber: fc.option(fc.nat(1)), isLeaving: fc.boolean() },
      what: fc.constantFrom(
        'beat',
        'beat',
        'beat',
        'beat',
        'gone',
        'remove',
        'held',
        'ended',
        'heard',
        'told',
      ),
      passedMs: fc.nat(120),
    });
    const seen = new Set<number>();
    fc.assert(
      fc.property(fc.array(changes, { maxLength: 60 }), (steps) => {
        const roster = new WorkerRoster();
        const slow = new SlowRoster();
        let nowMs = 0;
        for (const { worker, pool, isWhole, what, passedMs, layout, cacheNumber, ...numbers } of steps) {
          nowMs += passedMs;
          const id = `w${worker}`;
          const known = roster.find(id);
          const slowOne = slow.workers.get(id);
          expect(known !== undefined).toBe(slowOne !== undefined);
          if (what === 'beat' || what === 'gone') {
            // Two pools are of one model.
            const model = { name: 'm', text: `${pool >> 1}` } as ModelCard;
            const told = {
              ...{ kind: 'beat', worker: id, pool: `p${pool}`, isGone: what === 'gone', ...numbers },
              ...(isWhole ? { model } : {}),
              ...(layout === null ? {} : { layout: `l${layout}` }),
              ...(cacheNumber === null ? {} : { cacheNumber }),
            } as Beat;
            roster.beat(told, nowMs);
            slow.beat(told, nowMs);
          } else if (what === 'remove') {
            roster.remove(id);
            slow.remove(id);
          } else if (known !== undefined && slowOne !== undefined) {
            const change = what === 'held' ? 1 : -1;
            if (what === 'held' || what === 'ended') {
              roster.noteHeld(known, change);
              slowOne.held = Math.max(0, slowOne.held + change);
            } else {
              if (what === 'heard') roster.heard(known, nowMs);
              else roster.told(known, nowMs);
              slowOne.heardMs = nowMs;
              slowOne.isProbed = false;
            }
          }
          for (const key of ['0:m', '1:m']) {
            const found = roster.poolsOf(key).map((one) => ({
              pool: one.name.fingerprint,
              takers: [...one.takers].map((taker) => taker.id).sort(),
              ...{ sums: one.sums, fewestBlocks: one.fewestBlocks, layouts: [...one.layouts].sort() },
            }));
            expect(found).toEqual(slow.poolsOf(key));
            const numTakers = found.reduce((sum, { takers }) => sum + takers.length, 0);
            expect(roster.numTakersOf(key)).toBe(numTakers);
            seen.add(numTakers);
          }
          const silent = [...slow.workers].filter(([, one]) => nowMs - one.heardMs >= LIMITS.probeAfterMs);
          const isLost = ([, one]: (typeof silent)[number]) => nowMs - one.heardMs >= LIMITS.lostAfterMs;
          const toProbe = silent.filter((one) => !isLost(one) && !one[1].isProbed);
          const named = (all: typeof silent) => all.map(([name]) => name).sort();
          const found = roster.silent(nowMs, LIMITS);
          expect({ toProbe: found.toProbe.sort(), lost: found.lost.sort() }).toEqual({
            toProbe: named(toProbe),
            lost: named(silent.filter(isLost)),
          });
          for (const [, one] of toProbe) one.isProbed = true;
        }
      }),
      { seed: 54, numRuns: draws(300) },
    );
    expect(seen.size).toBeGreaterThan(4);
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
    expect(roster.find('b')!.pool.model).toBe(roster.find('a3')!.pool.model);
    roster.remove('a7');
    expect(roster.beat(stranger('c', 'other'), 0)).toBe('joined');
    // One that changes its pool leaves the other.
    expect(roster.beat(stranger('c', 'p7'), 0)).toBe('refused');
    expect(roster.beat(stranger('c', 'p8'), 0)).toBe('beat');
    expect(roster.beat(stranger('d', 'p7'), 0)).toBe('joined');
    for (let i = roster.size; i < 20_000; i++) roster.beat(stranger(`e${i}`, 'p1'), 0);
    expect(roster.beat(stranger('f', 'p1'), 0)).toBe('refused');
    expect(roster.beat(stranger('d', 'p7'), 0)).toBe('beat');
    expect(roster.beat({ ...stranger('d', 'p7'), isGone: true }, 0)).toBe('gone');
    expect(roster.beat(stranger('f', 'p1'), 0)).toBe('joined');
  });
});
