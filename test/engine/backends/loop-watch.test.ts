import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { GRACE_MS, LoopWatch } from '../../../engine/backends/loop-watch.js';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** A watch over a loop that is empty when the test says so. */
function opened() {
  let note = () => {};
  let keepsAlive = false;
  const port = { ref: () => (keepsAlive = true), unref: () => (keepsAlive = false) };
  const loop = { on: (_: string, listener: () => void) => (note = listener) };
  const watch = new LoopWatch(port as never, loop as never);
  return { watch, noteEmpty: () => note(), keepsAlive: () => keepsAlive };
}

const never = () => new Promise<void>(() => {});

describe('code that is awaited', () => {
  it('gives what it resolves with, and throws what it throws', async () => {
    const { watch } = opened();
    expect(await watch.settled('execute', async () => 5)).toBe(5);
    const error = new Error('no luck');
    await expect(watch.settled('execute', () => Promise.reject(error))).rejects.toBe(error);
    await expect(
      watch.settled('execute', () => {
        throw error;
      }),
    ).rejects.toBe(error);
  });

  it('fails where the loop stays empty for some seconds', async () => {
    const { watch, noteEmpty } = opened();
    let problem = '';
    const waiting = watch.settled('execute', never).catch((error) => {
      problem = error.message;
    });
    noteEmpty();
    await vi.advanceTimersByTimeAsync(GRACE_MS - 1);
    expect(problem).toBe('');
    await vi.advanceTimersByTimeAsync(1);
    noteEmpty();
    await waiting;
    expect(problem).toContain('execute never finished: its promise was not settled');
  });

  it('leaves the port out of what keeps the thread alive, unless the host owes an answer', async () => {
    const { watch, keepsAlive } = opened();
    expect(keepsAlive()).toBe(false);
    watch.noteServing();
    expect(keepsAlive()).toBe(true);
    let end = () => {};
    const done = watch.settled('execute', () => new Promise<void>((resolve) => (end = resolve)));
    expect(keepsAlive()).toBe(false);
    watch.hold();
    expect(keepsAlive()).toBe(true);
    watch.release();
    expect(keepsAlive()).toBe(false);
    end();
    await done;
    expect(keepsAlive()).toBe(true);
  });

  it('has no timer left behind it', async () => {
    const { watch, noteEmpty } = opened();
    let end = () => {};
    const done = watch.settled('execute', () => new Promise<void>((resolve) => (end = resolve)));
    noteEmpty();
    expect(vi.getTimerCount()).toBe(1);
    end();
    await done;
    expect(vi.getTimerCount()).toBe(0);
  });
});
