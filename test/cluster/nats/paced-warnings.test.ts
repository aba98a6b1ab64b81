import { expect, it } from 'vitest';
import { PacedWarnings } from '../../../cluster/nats/paced-warnings.js';

it('tells ten warnings in ten seconds, and how many came beside them', () => {
  const told: string[] = [];
  let nowMs = 5;
  const warnings = new PacedWarnings(
    (message) => told.push(message),
    () => nowMs,
  );
  for (let i = 0; i < 1000; i++) warnings.tell(`w${i}`);
  expect(told).toEqual(Array.from({ length: 10 }, (_, i) => `w${i}`));
  nowMs += 10_000;
  warnings.tell('next');
  warnings.tell('last');
  expect(told.slice(10)).toEqual(['next (990 more before it were not told.)', 'last']);
});
