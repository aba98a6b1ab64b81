import { expect, it } from 'vitest';
import { BatchRate } from '../../../../../../src/server/dashboard/page/repository/batch-rate.js';
import {
  adapterWords,
  badgeOf,
  failureWords,
  instanceWords,
  meanRows,
  meanTime,
  moreWords,
  reasonOf,
  sequenceWords,
  sizeLabel,
  sizesSentence,
  summaryOf,
} from '../../../../../../src/server/dashboard/page/repository/model-words.js';
import type { ModelRow, ModelWork } from '../../../../../../src/server/feeds/models-event.js';

const row = (state: ModelRow['state'], reason = '', work: ModelRow['work'] = null): ModelRow => ({
  name: 'm',
  version: '1',
  state,
  reason,
  work,
});
const instances = (busy: number, idle: number, starting = 0, dead = 0, restarts = 0) => ({
  instances: { busy, idle, starting, dead },
  restarts,
});

it('a state has its mark and its words', () => {
  const work = (busy: number, dead: number) => instances(busy, 0, 0, dead) as ModelWork;
  expect(badgeOf(row('READY', '', work(1, 1)))).toEqual({ mark: 'ready', text: 'Ready' });
  expect(badgeOf(row('READY', '', work(0, 2)))).toEqual({
    mark: 'failed',
    text: 'Ready, but no instance runs',
  });
  expect(badgeOf(row('LOADING')).text).toBe('Loading');
  expect(badgeOf(row('UNLOADING', 'unloading')).text).toBe('Unloading');
  expect(badgeOf(row('UNAVAILABLE', 'unloaded'))).toEqual({ mark: 'away', text: 'Unloaded' });
  expect(badgeOf(row('UNAVAILABLE', 'no such file'))).toEqual({ mark: 'failed', text: 'Unavailable' });
  expect(badgeOf(row(null)).text).toBe('Never loaded');
  expect(
    ['unloaded', 'unloading', 'no such file'].map((reason) => reasonOf(row('UNAVAILABLE', reason))),
  ).toEqual(['', '', 'no such file']);
});

it('adapters are named, and counted where there are more', () => {
  const words = (...names: string[]) =>
    adapterWords({ adapters: { count: names.length, names, changes: 1 } });
  expect([adapterWords({ adapters: null }), words(), words('sql'), words('sql', 'poet')]).toEqual([
    '',
    '',
    'LoRA adapter: sql',
    'LoRA adapters: sql, poet',
  ]);
  const many = { adapters: { count: 1022, names: ['a', 'b'], changes: 1 } };
  expect(adapterWords(many)).toBe('LoRA adapters: a, b and 1,020 more');
});

it('instances, sequences, failures and sizes are sentences', () => {
  expect(sequenceWords({ sequences: null })).toBe('');
  expect(sequenceWords({ sequences: { live: 0, backlog: 0 } })).toBe('Sequences: 0 live');
  expect(sequenceWords({ sequences: { live: 1024, backlog: 3 } })).toBe(
    'Sequences: 1,024 live, 3 in the backlog',
  );
  expect(instanceWords(instances(1, 0))).toBe('1 instance: busy');
  expect(instanceWords(instances(2, 1, 1, 1, 3))).toBe(
    '5 instances: 2 busy, 1 idle, 1 starting, 1 dead; started again 3 times',
  );
  expect(instanceWords(instances(0, 2, 0, 0, 1))).toBe('2 instances: 2 idle; started again once');
  const none = { REJECTED: 0, CANCELED: 0, BACKEND: 0, OTHER: 0 };
  expect(failureWords({ failures: none })).toBe('');
  expect(failureWords({ failures: { ...none, REJECTED: 1200, BACKEND: 3 } })).toBe(
    'Not answered: 1,200 refused, 3 failed in the model',
  );
  expect(
    sizesSentence([
      [1, 1, 12],
      [5, 6, 3],
    ]),
  ).toBe('Batches by their rows: 12 of 1, 3 of 5 to 6.');
  expect(
    (
      [
        [7, 7, 1],
        [5, 6, 1],
        [7, 8, 1],
      ] as const
    ).map(sizeLabel),
  ).toEqual(['7', '', '8']);
});

it('numbers have the digits that say something', () => {
  expect([null, 0.0004, 0.012, 1.24, 118.4, 2310].map(meanTime)).toEqual([
    '–',
    '1 µs',
    '12 µs',
    '1.2 ms',
    '118 ms',
    '2.31 s',
  ]);
  expect(
    [
      [0, 0],
      [8, 1],
      [17, 3],
    ].map(([rows, batches]) => meanRows({ rows: rows!, batches: batches! })),
  ).toEqual(['–', '8', '5.7']);
});

it('all models are counted, and those that are left out', () => {
  expect(summaryOf({ models: 0, states: {} })).toBe('This server has no model yet.');
  expect(summaryOf({ models: 3, states: { UNKNOWN: 1, READY: 2 } })).toBe(
    '3 models: 2 ready, 1 never loaded.',
  );
  expect(moreWords({ models: 1, rows: [row(null)] })).toBe('');
  expect(moreWords({ models: 51, rows: Array(50).fill(row(null)) })).toMatch(/^1 more model is not shown: /);
});

it('a rate is of the latest seconds, and begins anew with the counts', () => {
  const rate = new BatchRate();
  expect(rate.take(0, 100)).toBeNull();
  expect(rate.take(500, 110)).toBe(20);
  expect(rate.take(1000, 120)).toBe(20);
  // A heartbeat comes late; the rate is that since the latest event before the window.
  expect(rate.take(6000, 120)).toBe(0);
  expect(rate.take(6500, 4)).toBeNull();
  expect(rate.take(6500, 4)).toBeNull();
  expect(rate.take(7000, 5)).toBe(2);
});
