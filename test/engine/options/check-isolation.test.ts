import { describe, expect, it } from 'vitest';
import { checkIsolation, type IsolationParams } from '../../../engine/options/check-isolation.js';
import { checkOptionalParams } from '../../../engine/options/engine-limits.js';

describe('isolate', () => {
  it.each<IsolationParams>([
    {},
    { isolate: true },
    { isolate: true, computeWeight: 1 },
    { isolate: false, computeWeight: 7 },
    { computeWeight: 7 },
  ])('takes %j', (params) => {
    expect(() => checkIsolation(params)).not.toThrow();
  });

  it.each<[IsolationParams, string]>([
    [
      { isolate: true, computeWeight: 2 },
      'computeWeight is refused: an engine in a process of its own takes no turns with others',
    ],
  ])('refuses %j', (params, message) => {
    expect(() => checkIsolation(params)).toThrow(message);
  });

  it('is true or false', () => {
    const check = () => checkOptionalParams({ isolate: 1 as never }, 'InflightFusedBatching');
    expect(check).toThrow('isolate is 1; it must be true or false.');
  });
});
