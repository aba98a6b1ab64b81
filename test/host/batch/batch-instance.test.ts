import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { BatchClaims } from '../../../callbacks/infer/batch-claims.js';
import { BatchInstance } from '../../../host/batch/batch-instance.js';
import type { LinkEvents } from '../../../host/links/worker-link.js';

type Message = { type: 'ready'; info: null } | { type: 'done' } | { type: 'closed' };

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function open(timeLimitMs: number, recallAfterMs: number | null = null, startLimitMs = 0) {
  const links: { events: LinkEvents<Message>; hasEnded: boolean }[] = [];
  const lost: [string, string | null, string[]][] = [];
  const begun: string[] = [];
  const recalled: string[][] = [];
  let claims: BatchClaims | null = null;
  const instance: BatchInstance<string, null, Message, object> = new BatchInstance({
    name: 'Instance 0',
    batchesAhead: 3,
    timeLimitMs,
    recallAfterMs,
    restart: { delayMs: 1 },
    watchdogTimeoutMs: 0,
    terminateTimeoutMs: 1000,
    startLimitMs,
    link: (events, memory) => {
      claims = memory === null ? null : new BatchClaims(memory);
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
      onBegun: (batch) => begun.push(batch),
      onRecalled: (batches) => recalled.push(batches),
      onMessage: () => void instance.endOldest(),
      onLost: (error, begun, others) => lost.push([error.message, begun, others]),
      onEnded: () => {},
    },
  });
  const begin = () => links.at(-1)!.events.onMessage({ type: 'ready', info: null });
  const end = () => links.at(-1)!.events.onMessage({ type: 'done' });
  begin();
  /** The worker looks whether it may begin with a batch. */
  const claim = (slot: number | null) => claims!.claim(slot!);
  const post = (batch: string) => {
    const { nextSlot } = instance;
    instance.post(batch, {}, []);
    return nextSlot;
  };
  return { instance, links, lost, begun, recalled, begin, end, claim, post };
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
  const message = 'Instance 0 took longer over a batch than the 1000 ms that it may, and is started again.';
  expect(lost).toEqual([[message, 'b', ['c']]]);
  expect([links[0]!.hasEnded, instance.isRunning, instance.post('d', {}, [])]).toEqual([true, false, false]);
  expect(instance.state).toBe('starting');
  links[0]!.events.onExit(null);
  vi.advanceTimersByTime(1);
  begin();
  expect(instance.state).toBe('idle');
  expect([links.length, instance.restarts, instance.numPosted, instance.isFree]).toEqual([2, 1, 0, true]);
});

it('is replaced when it takes too long to start anew, and then has its time again', () => {
  const { instance, links, lost, begin } = open(0, null, 5000);
  vi.advanceTimersByTime(60_000);
  links[0]!.events.onExit(new Error('It was killed.'));
  vi.advanceTimersByTime(1);
  expect([links.length, instance.state]).toEqual([2, 'starting']);
  vi.advanceTimersByTime(4999);
  expect(links[1]!.hasEnded).toBe(false);
  vi.advanceTimersByTime(1);
  expect(links[1]!.hasEnded).toBe(true);
  expect(lost.map(([message]) => message)).toEqual([
    'It was killed.',
    'It took longer to start again than the 5000 ms that it may.',
  ]);
  links[1]!.events.onExit(null);
  vi.advanceTimersByTime(4000);
  begin();
  vi.advanceTimersByTime(60_000);
  expect([links.length, instance.state, lost.length]).toEqual([3, 'idle', 2]);
});

it('gives any time where it has no limit', () => {
  const { instance, lost } = open(0);
  instance.post('a', {}, []);
  vi.advanceTimersByTime(1e9);
  expect(lost).toEqual([]);
});

it('says which batch it begins with', () => {
  const { begun, post, end } = open(0);
  for (const batch of ['a', 'b']) post(batch);
  expect(begun).toEqual(['a']);
  end();
  expect(begun).toEqual(['a', 'b']);
});

describe('what waits behind a batch', () => {
  /** It has run a batch of 1 ms, so that it takes some ahead. */
  function fast() {
    const opened = open(0, 5);
    opened.post('first');
    vi.advanceTimersByTime(1);
    opened.end();
    return opened;
  }

  it('is taken back when that takes longer than it may, and not begun with', () => {
    const { instance, recalled, claim, post, end } = fast();
    const slots = ['a', 'b', 'c'].map(post);
    expect(claim(slots[0]!)).toBe(true);
    vi.advanceTimersByTime(4);
    expect([recalled, instance.numPosted]).toEqual([[], 3]);
    vi.advanceTimersByTime(1);
    expect([recalled, instance.numPosted, instance.isFree]).toEqual([[['b', 'c']], 1, false]);
    end();
    expect([instance.isFree, instance.nextSlot]).toEqual([true, slots[0]]);
    expect([claim(slots[1]!), claim(slots[2]!)]).toEqual([false, false]);
    for (const slot of slots.slice(1)) instance.noteDropped(slot!);
    expect(claim(post('b'))).toBe(true);
  });

  it('stays where the worker has begun with it meanwhile', () => {
    const { recalled, claim, post } = fast();
    const slots = ['a', 'b', 'c'].map(post);
    expect(slots.slice(0, 2).map(claim)).toEqual([true, true]);
    vi.advanceTimersByTime(5);
    expect(recalled).toEqual([['c']]);
  });

  it('has its own time from when it is the first', () => {
    const { recalled, post, end } = fast();
    for (const batch of ['a', 'b', 'c']) post(batch);
    vi.advanceTimersByTime(4);
    end();
    vi.advanceTimersByTime(4);
    expect(recalled).toEqual([]);
    vi.advanceTimersByTime(1);
    expect(recalled).toEqual([['c']]);
  });

  it('is nothing while batches take longer, nor before one is done', () => {
    const { instance, post, end } = open(0, 5);
    post('a');
    expect(instance.isFree).toBe(false);
    vi.advanceTimersByTime(5);
    end();
    post('b');
    expect(instance.isFree).toBe(false);
    vi.advanceTimersByTime(1);
    end();
    post('c');
    expect(instance.isFree).toBe(true);
  });

  it('is taken back where that waits for something else', () => {
    const { instance, recalled, post } = fast();
    for (const batch of ['a', 'b']) post(batch);
    const release = instance.hold();
    expect([recalled, instance.isFree]).toEqual([[['b']], false]);
    release();
    expect(instance.isFree).toBe(true);
  });
});
