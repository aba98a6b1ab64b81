import fc from 'fast-check';
import { expect, it } from 'vitest';
import { Placement } from '../../../../src/serving/on-demand/placement.js';

const LIMIT = 100;
const SIZES: Readonly<Record<string, number>> = { a: 30, b: 50, c: 70, d: 100 };
const names = fc.constantFrom('a', 'b', 'c', 'd');
const step = fc.record({
  what: fc.constantFrom('want', 'running', 'hold', 'idle', 'ended', 'tick'),
  name: names,
  afterMs: fc.constantFrom(0, 500, 1_000, 6_000, 400_000),
});

/** A placement, and what it has begun and ended. */
function set(keepAliveMs = 300_000) {
  const running = new Map<string, 'starting' | 'running' | 'ending'>();
  const held = new Map<string, number>();
  const events: string[] = [];
  const placement: Placement = new Placement({
    memoryBytes: LIMIT,
    keepAliveMs,
    start: (name, { bytes }) => {
      expect(bytes).toBe(SIZES[name]);
      expect(running.has(name)).toBe(false);
      running.set(name, 'starting');
      events.push(`+${name}`);
    },
    stop: (name) => {
      // Nothing that is used goes.
      expect([running.get(name), held.get(name) ?? 0]).toEqual(['running', 0]);
      running.set(name, 'ending');
      events.push(`-${name}`);
    },
  });
  const want = (name: string, nowMs: number) =>
    placement.want(name, { bytes: SIZES[name]!, cacheBytes: 1 }, nowMs);
  const run = (name: string, nowMs: number) => {
    running.set(name, 'running');
    placement.noteRunning(name, nowMs);
  };
  const hold = (name: string, count: number, nowMs: number) => {
    held.set(name, count);
    placement.noteHeld(name, count, nowMs);
  };
  const end = (name: string, nowMs: number) => {
    running.delete(name);
    held.delete(name);
    placement.noteEnded(name, nowMs);
  };
  return { placement, running, events, want, run, hold, end };
}

it('memory is never exceeded, what is used stays, and what is wanted comes in the end', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), names, (steps, last) => {
      const { placement, running, want, run, hold, end } = set();
      let nowMs = 0;
      const check = () => {
        const used = [...running.keys()].reduce((sum, name) => sum + SIZES[name]!, 0);
        expect(used).toBeLessThanOrEqual(LIMIT);
        expect(placement.usedBytes).toBe(used);
      };
      for (const { what, name, afterMs } of steps) {
        nowMs += afterMs;
        const stage = running.get(name);
        if (what === 'want') want(name, nowMs);
        else if (what === 'running' && stage === 'starting') run(name, nowMs);
        else if (what === 'hold' && stage === 'running') hold(name, 1, nowMs);
        else if (what === 'idle' && stage === 'running') hold(name, 0, nowMs);
        else if (what === 'ended' && stage !== undefined) end(name, nowMs);
        else placement.tick(nowMs);
        check();
      }
      // Every worker does its part from now on, and one model is wanted.
      for (let i = 0; i < 40 && running.get(last) !== 'running'; i++) {
        nowMs += 1_000;
        for (const [name, stage] of [...running]) {
          if (stage === 'starting') run(name, nowMs);
          else if (stage === 'running') hold(name, 0, nowMs);
          else end(name, nowMs);
        }
        want(last, nowMs);
        check();
      }
      expect(running.get(last)).toBe('running');
    }),
  );
});

it('the one that was used longest ago makes room, and goes before the other one comes', () => {
  const { events, want, run, hold, end } = set();
  want('a', 0);
  want('b', 0);
  expect(events).toEqual(['+a', '+b']);
  run('a', 1_000);
  run('b', 1_000);
  hold('a', 1, 2_000);
  hold('a', 0, 9_000);
  want('c', 15_000);
  expect(events).toEqual(['+a', '+b', '-b']);
  end('b', 16_000);
  expect(events).toEqual(['+a', '+b', '-b', '+c']);
});

it('a model that has just come, or has requests, is not sent away, and a wish that nobody repeats is forgotten', () => {
  const { events, placement, want, run, hold } = set(10_000);
  want('b', 0);
  run('b', 1_000);
  want('c', 2_000);
  hold('b', 1, 2_500);
  want('c', 60_000);
  expect(events).toEqual(['+b']);
  hold('b', 0, 63_000);
  placement.tick(72_000);
  expect(events).toEqual(['+b']);
  // Its own time is over.
  placement.tick(73_000);
  expect(events).toEqual(['+b', '-b']);
});
