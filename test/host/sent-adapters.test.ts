import { expect, it } from 'vitest';
import type { RequestFailure } from '../../callbacks/request-failure.js';
import { SentAdapters } from '../../host/sent-adapters.js';
import { fakeAdapter } from '../support/lora-requests.js';

const brought = (taskId: bigint, weights = fakeAdapter(Number(taskId))) => ({
  taskId,
  weights,
  wasCarried: false,
});
const failure = (kind: RequestFailure['kind']) => ({ kind }) as RequestFailure;
const NAMES = ['lora_weights', 'lora_config'];

it('weights are sent once, and again when the engine has lost them', () => {
  const sent = new SentAdapters(true);
  const weights = fakeAdapter(1);
  const [first, second, third] = [1, 2, 3].map(() => brought(1n, weights));
  expect(Object.keys(sent.tensorsFor(first!))).toEqual(NAMES);
  expect(sent.tensorsFor(second!)).toEqual({});
  expect(sent.isToSendAgain(second!, failure('adapter'))).toBe(true);
  expect(Object.keys(sent.tensorsFor(second!))).toEqual(NAMES);
  expect(sent.tensorsFor(third!)).toEqual({});
});

it('a request that had the weights with it is not sent again, whatever it failed with', () => {
  const sent = new SentAdapters(true);
  const one = brought(1n);
  sent.tensorsFor(one);
  expect(sent.isToSendAgain(one, failure('adapter'))).toBe(false);
  const other = { ...one, wasCarried: false };
  expect(Object.keys(sent.tensorsFor(other))).toEqual(NAMES); // the first one may have failed before they were read
  const third = { ...one, wasCarried: false };
  sent.tensorsFor(third);
  expect(sent.isToSendAgain(third, failure('invalid'))).toBe(false);
});

it('another adapter of the same task is sent', () => {
  const sent = new SentAdapters(true);
  const [one, other] = [fakeAdapter(1), fakeAdapter(2)];
  sent.tensorsFor(brought(1n, one));
  expect(Object.keys(sent.tensorsFor(brought(1n, other)))).toEqual(NAMES);
  expect(Object.keys(sent.tensorsFor(brought(1n, one)))).toEqual(NAMES);
  expect(Object.keys(sent.tensorsFor(brought(2n, one)))).toEqual(NAMES);
});

it('a bounded number of tasks is noted', () => {
  const sent = new SentAdapters(true);
  const weights = fakeAdapter(1, 1);
  for (let task = 0n; task <= 4096n; task++) sent.tensorsFor(brought(task, weights));
  expect(sent.tensorsFor(brought(1n, weights))).toEqual({});
  expect(Object.keys(sent.tensorsFor(brought(0n, weights)))).toEqual(NAMES);
});
