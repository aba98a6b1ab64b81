import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type { ServedCard } from '../../../src/queue/learned-models.js';
import { LoadingWorkers } from '../../../src/queue/loading-workers.js';
import { WantedModels } from '../../../src/queue/wanted-models.js';
import { ExpectedModels } from '../../../src/serving/expected-models.js';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

const served = (name: string, numWorkers: number, numWaiting: number): ServedCard =>
  ({ card: { name }, folder: '', numWorkers, numWaiting }) as unknown as ServedCard;

it('a model is wanted once a second while requests wait and nobody has it, or loads it', () => {
  const told: string[] = [];
  const loading = new LoadingWorkers();
  let models = [served('a', 0, 2), served('b', 1, 9), served('c', 0, 0)];
  const wanted = new WantedModels({
    learned: { served: () => models },
    ...{ loading, expected: new ExpectedModels() },
    tell: (name) => told.push(name),
  });
  vi.advanceTimersByTime(2_000);
  expect(told).toEqual(['a', 'a']);
  const notice = { worker: 'w', model: 'a', phase: 'loading', fraction: null, elapsedMs: 0 } as const;
  loading.hear(notice);
  vi.advanceTimersByTime(2_000);
  expect(told).toEqual(['a', 'a']);
  // It is silent: it may be dead.
  vi.advanceTimersByTime(5_000);
  expect(told.length).toBeGreaterThan(2);
  models = [served('a', 1, 2)];
  const count = told.length;
  vi.advanceTimersByTime(3_000);
  expect(told).toHaveLength(count);
  wanted.close();
});

it('a model that is known by name alone is wanted by each request that is refused', () => {
  const told: string[] = [];
  const expected = new ExpectedModels(['named']);
  const wanted = new WantedModels({
    learned: { served: () => [] },
    loading: new LoadingWorkers(),
    ...{ expected, tell: (name: string) => told.push(name) },
  });
  expected.offer('offered');
  expect(expected.refuse('other')).toBe(false);
  vi.advanceTimersByTime(1_000);
  expect(told).toEqual([]);
  expect([expected.refuse('named'), expected.refuse('offered'), expected.refuse('offered')]).toEqual([
    ...[true, true, true],
  ]);
  vi.advanceTimersByTime(3_000);
  expect(told).toEqual(['named', 'offered']);
  expect(Object.fromEntries(expected.refused)).toEqual({ named: 1, offered: 2 });
  // No worker offers it any more.
  vi.advanceTimersByTime(5_000);
  expect([expected.has('offered'), expected.has('named')]).toEqual([false, true]);
  expect(expected.names).toEqual(['named']);
  wanted.close();
});

it('a flood of offers takes no more than its bound', () => {
  const expected = new ExpectedModels();
  for (let i = 0; i < 2_000; i++) expected.offer(`m${i}`);
  expect(expected.names).toHaveLength(1_000);
  vi.advanceTimersByTime(5_000);
  expected.offer('late');
  expect(expected.names).toEqual(['late']);
});
