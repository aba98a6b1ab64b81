import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { BatchInstance } from '../../../host/batch/batch-instance.js';
import type { LinkEvents } from '../../../host/links/worker-link.js';

type Message = { type: 'ready'; info: null } | { type: 'done' } | { type: 'closed' };

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function open(timeLimitMs: number) {
  const links: { events: LinkEvents<Message>; hasEnded: boolean }[] = [];
  const lost: [string, string | null, string[]][] = [];
  const instance: BatchInstance<string, null, Message, object> = new BatchInstance({
    name: 'Instance 0',
    batchesAhead: 3,
    timeLimitMs,
    restart: { delayMs: 1 },
    watchdogTimeoutMs: 0,
    terminateTimeoutMs: 1000,
    link: (events) => {
      const link = { events: events as LinkEvents<Message>, hasEnded: false };
      links.push(link);
      return {
        subject: 'It',
        pid: null,
        heartbeat: { beats: 0, isAsleep: false },
        whyStuck: 'is stuck',
        post: () => {},
        desert: () => {},
        terminate: () => {
          link.hasEnded = true;
        },
        unref: () => {},
      };
    },
    events: {
      onReady: () => {},
      onMessage: () => void instance.endOldest(),
      onLost: (error, begun, others) => lost.push([error.message, begun, others]),
      onEnded: () => {},
    },
  });
  const begin = () => links.at(-1)!.events.onMessage({ type: 'ready', info: null });
  const end = () => links.at(-1)!.events.onMessage({ type: 'done' });
  begin();
  return { instance, links, lost, begin, end };
}

it('gives each batch its time from when it is its turn', () => {
  const { instance, lost, end } = open(1000);
  for (const batch of ['a', 'b', 'c']) instance.post(batch, {}, []);
  expect(instance.isFree).toBe(false);
  vi.advanceTimersByTime(900);
  end();
  vi.advanceTimersByTime(900);
  end();
  vi.advanceTimersByTime(900);
  end();
  vi.advanceTimersByTime(10_000);
  instance.post('d', {}, []);
  vi.advanceTimersByTime(999);
  expect(lost).toEqual([]);
});

it('is replaced when a batch has had its time, with what waited for it', () => {
  const { instance, links, lost, begin, end } = open(1000);
  for (const batch of ['a', 'b', 'c']) instance.post(batch, {}, []);
  vi.advanceTimersByTime(600);
  end();
  vi.advanceTimersByTime(999);
  expect(lost).toEqual([]);
  vi.advanceTimersByTime(1);
  const message = 'Instance 0 took longer over a batch than the 1000 ms that it may, and is started anew.';
  expect(lost).toEqual([[message, 'b', ['c']]]);
  expect([links[0]!.hasEnded, instance.isRunning, instance.post('d', {}, [])]).toEqual([true, false, false]);
  expect(instance.state).toBe('starting');
  links[0]!.events.onExit(null);
  vi.advanceTimersByTime(1);
  begin();
  expect(instance.state).toBe('idle');
  expect([links.length, instance.restarts, instance.numPosted, instance.isFree]).toEqual([2, 1, 0, true]);
});

it('gives any time where it has no limit', () => {
  const { instance, lost } = open(0);
  instance.post('a', {}, []);
  vi.advanceTimersByTime(1e9);
  expect(lost).toEqual([]);
});
