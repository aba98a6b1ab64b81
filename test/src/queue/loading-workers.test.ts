import fc from 'fast-check';
import { expect, it, vi } from 'vitest';
import {
  LOADING_PHASES,
  type LoadingNotice,
  packLoading,
  readLoading,
} from '../../../cluster/nats/loading-notice.js';
import { LoadingTeller } from '../../../src/queue/loading-teller.js';
import { LoadingWorkers } from '../../../src/queue/loading-workers.js';
import { WorkerLife } from '../../../src/queue/worker-life.js';

const SILENCE_MS = 5_000;
const notice: LoadingNotice = {
  ...{ worker: 'w1', model: 'm', phase: 'downloading', fraction: 0.25, elapsedMs: 1_000 },
};

it('a notice crosses as it is, and what is none is refused', () => {
  expect(readLoading(packLoading(notice))).toEqual(notice);
  expect(readLoading(packLoading({ ...notice, fraction: null }))).toEqual({ ...notice, fraction: null });
  const wrong = [
    { ...notice, worker: 'a.b' },
    { ...notice, model: 'm'.repeat(2_000) },
    { ...notice, phase: 'sleeping' },
    { ...notice, fraction: 1.5 },
    { ...notice, elapsedMs: -1 },
    { ...notice, model: 'm', more: 'm'.repeat(10_000) },
    [],
    null,
  ];
  for (const one of wrong)
    expect(() => readLoading(Buffer.from(JSON.stringify(one)))).toThrow(/not the report of a worker/);
  expect(() => readLoading(Buffer.from('{'))).toThrow(/not the report of a worker/);
});

const heard = fc.record({
  worker: fc.constantFrom('w1', 'w2', 'w3'),
  model: fc.constantFrom('a', 'b'),
  phase: fc.constantFrom(...LOADING_PHASES.slice(1)),
  fraction: fc.option(fc.double({ min: 0, max: 1, noNaN: true })),
  elapsedMs: fc.integer({ min: 0, max: 100_000 }),
  afterMs: fc.integer({ min: 0, max: 4_000 }),
});

it('a worker counts from its first notice to its last, or until it is silent, and its load once', () => {
  fc.assert(
    fc.property(fc.array(heard, { maxLength: 30 }), (all) => {
      const workers = new LoadingWorkers();
      /** The same, looked up in the whole history. */
      const history: (LoadingNotice & { atMs: number })[] = [];
      let nowMs = 0;
      for (const { afterMs, ...one } of all) {
        nowMs += afterMs;
        workers.hear(one, nowMs);
        history.push({ ...one, atMs: nowMs });
        for (const model of ['a', 'b']) {
          const last = ['w1', 'w2', 'w3'].flatMap(
            (worker) => history.findLast((h) => h.worker === worker) ?? [],
          );
          const loading = last.filter(
            (h) => h.model === model && h.phase !== 'ready' && nowMs - h.atMs <= SILENCE_MS,
          );
          const fractions = loading.flatMap(({ fraction }) => fraction ?? []);
          const loads = history.filter((h) => h.model === model && h.phase === 'ready');
          expect(workers.of(model, nowMs)).toEqual({
            loading: loading.length,
            fraction: fractions.length === 0 ? null : Math.max(...fractions),
            loads: loads.length,
            loadMs: loads.reduce((sum, { elapsedMs }) => sum + elapsedMs, 0),
          });
        }
      }
    }),
  );
});

it('a flood of workers that load takes no more than its bound', () => {
  const workers = new LoadingWorkers();
  for (let i = 0; i < 2_000; i++) workers.hear({ ...notice, worker: `w${i}` }, 0);
  expect(workers.of('m', 0).loading).toBe(1_000);
  for (let i = 0; i < 2_000; i++) workers.hear({ ...notice, model: `m${i}`, phase: 'ready' }, 0);
  expect(workers.of('m1999', 0).loads).toBe(0);
  workers.hear({ ...notice, model: 'm1', phase: 'ready' }, 0);
  expect(workers.of('m1', 0).loads).toBe(2);
  expect(workers.of('m', SILENCE_MS + 1).loading).toBe(0);
});

it('a worker tells what it does at once and each second, and no more when it is ready', () => {
  vi.useFakeTimers();
  try {
    const told: LoadingNotice[] = [];
    const teller = new LoadingTeller({ worker: 'w1', model: 'm' }, (one) => told.push(one));
    const life = new WorkerLife('m');
    life.watchLoad(() => teller.state);
    expect(told).toEqual([{ worker: 'w1', model: 'm', phase: 'loading', fraction: null, elapsedMs: 0 }]);
    const after = (change: () => void) => {
      change();
      vi.advanceTimersByTime(1_000);
      const { phase, fraction } = told.at(-1)!;
      expect(life.report()).toMatchObject({ status: 'loading', phase, fraction });
      return [phase, fraction];
    };
    expect(after(() => teller.onDownload({ done: 1, total: 4 }))).toEqual(['downloading', 0.25]);
    expect(after(() => teller.onDownload({ done: 4, total: 4 }))).toEqual(['loading', null]);
    const build = (phase: 'waiting' | 'reading' | 'converting' | 'finishing', done: number) =>
      after(() => teller.onProgress({ phase, done, total: 10 }));
    expect(build('waiting', 0)).toEqual(['building', null]);
    expect(build('converting', 5)).toEqual(['building', 0.5]);
    expect(build('finishing', 10)).toEqual(['loading', null]);
    expect(told.at(-1)!.elapsedMs).toBe(5_000);
    teller.ready();
    expect(told.at(-1)).toMatchObject({ phase: 'ready', elapsedMs: 5_000 });
    const count = told.length;
    vi.advanceTimersByTime(5_000);
    expect(told).toHaveLength(count);
  } finally {
    vi.useRealTimers();
  }
});
