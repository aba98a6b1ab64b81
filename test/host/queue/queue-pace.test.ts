import { expect, it } from 'vitest';
import { QueuePace } from '../../../host/queue/queue-pace.js';

it('tells how long a queue takes at the pace of the last departures, and longer while none leaves', () => {
  const pace = new QueuePace();
  expect(pace.waitMs(10, 0)).toBeNull();
  pace.note(1, 1000);
  expect(pace.waitMs(10, 2000)).toBeNull();
  for (let ms = 1100; ms <= 2000; ms += 100) pace.note(1, ms);
  expect(pace.waitMs(11, 2000)).toBe(1000);
  expect(pace.waitMs(11, 12_000)).toBe(11_000);
});

it('forgets what was long ago', () => {
  const pace = new QueuePace();
  pace.note(1000, 0);
  for (let ms = 1000; ms < 65_000; ms += 1000) pace.note(1, ms);
  expect(pace.waitMs(1, 65_000)).toBe(1000);
});
