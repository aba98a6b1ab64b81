import { describe, expect, it } from 'vitest';
import { checkWorkerRestart, RestartPolicy } from '../../callbacks/restart-policy.js';
import { ParameterError } from '../../callbacks/sampling-params.js';

const options = { delayMs: 100, factor: 3, maxDelayMs: 2000, stableMs: 5000, maxFailedStarts: 3 };

describe('the wait before a restart', () => {
  it('grows by the factor up to its limit, and begins anew after a sound worker', () => {
    const policy = new RestartPolicy(options);
    expect([0, 1, 10, 4999, 0].map((ranMs) => policy.next(ranMs))).toEqual([100, 300, 900, 2000, 2000]);
    expect([5000, 4999, 60_000].map((ranMs) => policy.next(ranMs))).toEqual([100, 300, 100]);
  });

  it('never ends for workers that were ready, however often they die', () => {
    const policy = new RestartPolicy(options);
    for (let death = 0; death < 1000; death++) expect(policy.next(1)).toBeLessThanOrEqual(2000);
  });

  it('ends after the stated number of deaths in a row before ready', () => {
    const policy = new RestartPolicy(options);
    expect([1, null, null].map((ranMs) => policy.next(ranMs))).toEqual([100, 300, 900]);
    expect(policy.next(1)).toBe(2000); // was ready: the count starts over
    expect([null, null, null].map((ranMs) => policy.next(ranMs))).toEqual([2000, 2000, null]);
    expect(policy.failedStarts).toBe(3);
  });
});

describe('the options of restarts', () => {
  it.each([
    [undefined, null],
    [false, null],
    [{}, null],
    [options, null],
    [true, /workerRestart is true; it must be false or an object/],
    [{ delayMs: -1 }, /workerRestart\.delayMs is -1/],
    [{ factor: 0.5 }, /workerRestart\.factor is 0\.5/],
    [{ maxDelayMs: Number.NaN }, /workerRestart\.maxDelayMs is NaN/],
    [{ stableMs: '5' }, /workerRestart\.stableMs is '5'/],
    [{ maxFailedStarts: 1.5 }, /workerRestart\.maxFailedStarts is 1\.5/],
    [{ maxFailedStarts: 0 }, /workerRestart\.maxFailedStarts is 0/],
  ])('%j', (given, message) => {
    const check = () => checkWorkerRestart(given as never);
    if (message === null) expect(check).not.toThrow();
    else {
      expect(check).toThrow(ParameterError);
      expect(check).toThrow(message);
    }
  });
});
