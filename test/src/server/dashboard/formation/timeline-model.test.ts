import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Formation } from '../../../../../callbacks/formation.js';
import { TimelineModel } from '../../../../../src/server/dashboard/page/formation/timeline-model.js';
import type { Track } from '../../../../../src/server/dashboard/page/formation/track.js';
import { numbersOf } from '../../../../../src/server/dashboard/page/formation/words.js';
import { courseOf, eventsOf, formation, life, START_MS } from './simulated-feed.js';

const lives = fc
  .array(life, { maxLength: 12 })
  .map((all) => all.map((one, index) => courseOf(one, index + 1)));

/** Received as soon as it was sent, on a client whose clock began with the server's. */
const take = (model: TimelineModel, event: Formation) => model.take(event, event.timeMs - START_MS + 5);

function modelOf(events: readonly Formation[], maxLanes = 100): TimelineModel {
  const model = new TimelineModel(maxLanes);
  for (const event of events) take(model, event);
  return model;
}

/** All that a picture shows of it. */
const shown = ({ id, segments, end }: Track) => ({
  id,
  end: end?.reason ?? null,
  segments: segments.map(({ kind, beginMs, endMs }) => [kind, Math.round(beginMs), Math.round(endMs)]),
});
const allShown = (model: TimelineModel) =>
  Array.from(model.tracks, shown).sort((left, right) => left.id - right.id);

function expectWhole({ beginMs, segments, end }: Track): void {
  expect(segments[0]!.beginMs).toBe(beginMs);
  for (const [index, { beginMs: begin, endMs }] of segments.entries()) {
    expect(endMs).toBeGreaterThanOrEqual(begin);
    if (index > 0) expect(begin).toBe(segments[index - 1]!.endMs);
  }
  if (end === null) expect(segments.at(-1)!.endMs).toBe(Number.POSITIVE_INFINITY);
  else expect(segments.at(-1)!.endMs).toBeCloseTo(end.ms, 3);
}

/** No two requests at one time in one row. */
function expectApart(model: TimelineModel): void {
  const placed = Array.from(model.tracks).filter(
    ({ lane, end, shownFromMs }) => lane >= 0 && (end?.ms ?? Infinity) > shownFromMs,
  );
  placed.sort((left, right) => left.lane - right.lane || left.shownFromMs - right.shownFromMs);
  for (const [index, track] of placed.entries()) {
    const before = placed[index - 1];
    if (before?.lane !== track.lane) continue;
    expect(track.shownFromMs).toBeGreaterThanOrEqual(before.end?.ms ?? Infinity);
  }
}

describe('the timeline', () => {
  it('knows the adapters of requests', () => {
    const chunks = [{ tokens: 32, tookMs: 20, thenWaitsMs: 30 }];
    const lifeOf = { arrivesMs: 0, waitsMs: 40, chunks, generatesMs: 500, pause: null, reason: 'stop' };
    const [first] = eventsOf([courseOf(lifeOf, 1), courseOf(lifeOf, 2)]);
    const model = modelOf([
      {
        ...first!,
        adapters: [
          [2, 'sql'],
          [99, 'nobody'],
        ],
      },
    ]);
    expect(Array.from(model.tracks, ({ id, adapter }) => [id, adapter])).toEqual([
      [1, null],
      [2, 'sql'],
    ]);
    expect(numbersOf(model.track(2)!).at(-1)).toEqual(['adapter', 'sql']);
  });

  it('tells the life of a request as it was, to the millisecond', () => {
    const chunks = [
      { tokens: 32, tookMs: 20, thenWaitsMs: 30 },
      { tokens: 8, tookMs: 10, thenWaitsMs: 0 },
    ];
    const pause = { forMs: 100, tookMs: 15, generatesMs: 300 };
    const one = courseOf({ arrivesMs: 10, waitsMs: 40, chunks, generatesMs: 500, pause, reason: 'stop' }, 1);
    const model = modelOf(eventsOf([one]));
    const at = (ms: number) => START_MS + ms;
    expect(allShown(model)).toEqual([
      {
        id: 1,
        end: 'stop',
        segments: [
          ['queued', at(10), at(50)],
          ['context', at(50), at(70)],
          ['between', at(70), at(100)],
          ['context', at(100), at(110)],
          ['generating', at(110), at(610)],
          ['paused', at(610), at(710)],
          ['resuming', at(710), at(725)],
          ['generating', at(725), at(1025)],
        ],
      },
    ]);
    expect(model.track(1)!.numbers).toMatchObject({ promptTokens: 40, generated: 9 });
  });

  it('knows after all events what happened, whatever order they came in and however often', () => {
    fc.assert(
      fc.property(lives, fc.infiniteStream(fc.nat()), (courses, numbers) => {
        const events = eventsOf(courses);
        const ordered = allShown(modelOf(events));
        // Late by up to a second, and some of them twice.
        const shuffled = events
          .flatMap((event) => (numbers.next().value! % 3 === 0 ? [event, event] : [event]))
          .map((event) => ({ event, order: event.timeMs + (numbers.next().value! % 1000) }))
          .sort((left, right) => left.order - right.order)
          .map(({ event }) => event);
        const model = modelOf([...shuffled, events.at(-1)!]);
        const ends = (all: typeof ordered) => all.map(({ id, end }) => [id, end]);
        expect(ends(allShown(model))).toEqual(ends(ordered));
        for (const track of model.tracks) expectWhole(track);
        expectApart(model);
        for (const { id, reason, steps } of courses) {
          const track = model.track(id)!;
          expect(track.end!.reason).toBe(reason);
          const chunks = track.segments.filter(({ tokens }) => tokens > 0);
          const told = steps.filter(({ kind }) => kind !== 1);
          expect(chunks.map(({ tokens }) => tokens)).toEqual(told.map(({ tokens }) => tokens));
        }
      }),
      { numRuns: 60 },
    );
  });

  it('shows who is in flight and nobody else, in whole rows of their own, whatever events are missed', () => {
    fc.assert(
      fc.property(
        lives,
        fc.infiniteStream(fc.boolean()),
        fc.integer({ min: 1, max: 8 }),
        (courses, kept, lanes) => {
          const model = new TimelineModel(lanes);
          for (const event of eventsOf(courses)) {
            if (!kept.next().value) continue;
            take(model, event);
            const open = Array.from(model.tracks).filter(({ end }) => end === null);
            const listed = event.requests.map(([id]) => id);
            expect(open.map(({ id }) => id).sort()).toEqual(listed.sort());
            for (const row of event.requests) {
              const doing = {
                0: ['queued'],
                1: ['context', 'between', 'resuming'],
                2: ['generating'],
                3: ['paused'],
              };
              expect(doing[row[2] as 0]).toContain(model.track(row[0])!.doing);
            }
            for (const track of model.tracks) expectWhole(track);
            expectApart(model);
            expect(open.filter(({ lane }) => lane < 0)).toHaveLength(model.unplaced);
            expect(Math.max(-1, ...Array.from(model.tracks, ({ lane }) => lane))).toBeLessThan(lanes);
          }
        },
      ),
      { numRuns: 60 },
    );
  });

  it('a worker that died ends what it had; what comes then goes on in the same picture', () => {
    const model = new TimelineModel(8);
    const row = (id: number, ageMs: number) => [id, '', 2, ageMs, 4, 4, 4, 1, 9, 1, 0, 0, 1, 2] as const;
    take(model, formation(200, 90, { requests: [[...row(1, 100)], [...row(2, 50)]] }));
    const ended: Formation['ended'] = [
      [1, '', 'error', -5, 295, 4, 1, 0],
      [2, '', 'error', -5, 245, 4, 1, 0],
    ];
    take(model, formation(400, 0, { ended }));
    take(model, formation(600, 3, { requests: [[...row(3, 150)]] }));
    expect(Array.from(model.tracks, ({ id, end }) => [id, end?.reason])).toEqual([
      [1, 'error'],
      [2, 'error'],
      [3, undefined],
    ]);
    expect(model.track(3)!.lane).toBe(2);
    expect(model.track(1)!.row).toBe(-1);
  });

  it('is empty after a reset, and goes on with the clock of another server', () => {
    const [course] = [
      courseOf(
        {
          arrivesMs: 0,
          waitsMs: 0,
          chunks: [{ tokens: 1, tookMs: 1, thenWaitsMs: 0 }],
          generatesMs: 900,
          pause: null,
          reason: 'stop',
        },
        1,
      ),
    ];
    const events = eventsOf([course!]);
    const model = modelOf(events.slice(0, 3));
    model.reset();
    expect([...model.tracks]).toEqual([]);
    expect(model.serverMs(100)).toBe(0);
    // A server whose clock is an hour behind, and one that was set while the page watched.
    for (const shiftMs of [-3_600_000, 7_200_000]) {
      for (const event of events) {
        const timeMs = event.timeMs + shiftMs;
        model.take({ ...event, timeMs }, event.timeMs - START_MS);
      }
      expect(Array.from(model.tracks, ({ beginMs }) => beginMs)).toEqual([START_MS + shiftMs]);
      expect(model.serverMs(900) - START_MS - shiftMs).toBeCloseTo(900, -1);
    }
  });

  it('keeps those that wait beyond the list, and forgets what ended long ago', () => {
    const model = new TimelineModel(4);
    const queued = (id: number, ageMs: number) => [id, '', 0, ageMs, 4, 4, 0, 0, 9, 0, 0, 0, -1, -1] as const;
    take(model, formation(100, 1, { requests: [[...queued(1, 10)], [...queued(2, 10)]], queued: 2 }));
    take(model, formation(300, 1, { requests: [[...queued(2, 210)]], queued: 2 }));
    expect(Array.from(model.tracks, ({ end }) => end)).toEqual([null, null]);
    take(model, formation(500, 1));
    expect(Array.from(model.tracks, ({ end }) => end?.reason)).toEqual(['gone', 'gone']);
    take(model, formation(80_000, 1));
    take(model, formation(80_200, 1));
    expect([...model.tracks]).toEqual([]);
  });
});
