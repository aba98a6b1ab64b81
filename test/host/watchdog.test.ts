import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Heartbeat } from '../../callbacks/heartbeat.js';
import { Watchdog } from '../../host/watchdog.js';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

/** A watchdog of 800 ms, which looks every 100 ms. */
function watch() {
  const heartbeat = new Heartbeat(Heartbeat.createBuffer());
  const state = { stuck: 0, awaited: false };
  const watchdog = new Watchdog({
    heartbeat,
    timeoutMs: 800,
    isAwaited: () => state.awaited,
    onStuck: () => state.stuck++,
  });
  return { heartbeat, watchdog, state };
}

describe('the watchdog', () => {
  it('calls once, when a busy worker has not moved for the time-out', () => {
    const { heartbeat, state } = watch();
    heartbeat.beat();
    vi.advanceTimersByTime(800);
    expect(state.stuck).toBe(0); // the first look saw the beat
    vi.advanceTimersByTime(100);
    expect(state.stuck).toBe(1);
    vi.advanceTimersByTime(10_000);
    expect(state.stuck).toBe(1);
  });

  it('is content with one beat within each time-out', () => {
    const { heartbeat, state } = watch();
    for (let i = 0; i < 50; i++) {
      heartbeat.beat();
      vi.advanceTimersByTime(790);
    }
    expect(state.stuck).toBe(0);
  });

  it('lets a worker sleep that nobody waits for, but not one that somebody waits for', () => {
    const { heartbeat, state } = watch();
    heartbeat.beat();
    heartbeat.sleep();
    vi.advanceTimersByTime(100_000);
    expect(state.stuck).toBe(0);
    state.awaited = true;
    vi.advanceTimersByTime(700);
    expect(state.stuck).toBe(0);
    vi.advanceTimersByTime(100);
    expect(state.stuck).toBe(1);
  });

  it('counts its own looks: time in which its own thread was busy is not held against the worker', () => {
    const { heartbeat, watchdog, state } = watch();
    heartbeat.beat();
    vi.setSystemTime(Date.now() + 3_600_000); // the process was stopped for an hour
    watchdog.check();
    watchdog.check();
    expect(state.stuck).toBe(0);
    watchdog.stop();
    vi.advanceTimersByTime(100_000);
    expect(state.stuck).toBe(0);
  });
});

describe('the heartbeat', () => {
  it('is seen through another view of the same memory, asleep or not', () => {
    const buffer = Heartbeat.createBuffer();
    const [worker, host] = [new Heartbeat(buffer), new Heartbeat(buffer)];
    expect([host.beats, host.isAsleep]).toEqual([0, false]);
    worker.beat();
    worker.sleep();
    expect([host.beats, host.isAsleep]).toEqual([1, true]);
    worker.beat();
    expect([host.beats, host.isAsleep]).toEqual([2, false]);
  });
});
