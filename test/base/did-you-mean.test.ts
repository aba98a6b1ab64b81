import { describe, expect, it } from 'vitest';
import { closestName } from '../../base/did-you-mean.js';

describe('closestName', () => {
  it.each([
    ['temprature', 'temperature'],
    ['max_toknes', 'max_tokens'],
    ['Stop', 'stop'],
  ])('%s means %s', (typed, meant) => {
    expect(closestName(typed, ['stop', 'temperature', 'max_tokens'])).toBe(meant);
  });

  it('says nothing where nothing is near', () => {
    expect(closestName('banana', ['stop', 'temperature', 'max_tokens'])).toBeNull();
    expect(closestName('x'.repeat(100_000), ['stop'])).toBeNull();
  });
});
