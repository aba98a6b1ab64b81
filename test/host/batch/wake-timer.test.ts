import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { WakeTimer } from '../../../host/batch/wake-timer.js';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function open() {
  const wakes: number[] = [];
  const timer: WakeTimer = new WakeTimer(() => wakes.push(timer.nowUs()));
  return { timer, wakes, startUs: timer.nowUs() };
}

it('wakes at the latest time that it was given, once, and sees that it is there', () => {
  const { timer, wakes, startUs } = open();
  timer.set(startUs + 5000);
  timer.set(startUs + 2400);
  vi.advanceTimersByTime(100);
  expect(wakes).toEqual([startUs + 2400]);
});

it('wakes no more where it is told so, and never at no time', () => {
  const { timer, wakes, startUs } = open();
  timer.set(startUs + 2000);
  timer.set(null);
  timer.set(Number.POSITIVE_INFINITY);
  vi.advanceTimersByTime(1e10);
  expect(wakes).toEqual([]);
});

it('wakes for a time that is over', () => {
  const { timer, wakes, startUs } = open();
  vi.advanceTimersByTime(10);
  timer.set(startUs);
  vi.advanceTimersByTime(1);
  expect(wakes).toEqual([startUs + 11_000]);
});

it('has a clock that does not go back to before a time for which it woke early', () => {
  const { timer, wakes, startUs } = open();
  timer.set(startUs + 1400);
  vi.advanceTimersByTime(1);
  expect(wakes).toEqual([startUs + 1400]);
  expect(timer.nowUs()).toBe(startUs + 1400);
});
