import { describe, expect, it } from 'vitest';
import { enginePriority } from '../../../../src/server/answering/text-request.js';
import { say, toyServer } from '../../support/toy-server.js';

describe('a priority', () => {
  it("is the engine's from 0 to 1, and vLLM's outside, of which a lower one comes first", () => {
    expect([undefined, 0, 0.25, 1].map(enginePriority)).toEqual([undefined, 0, 0.25, 1]);
    const given = [-(2 ** 31), -1000, -5, -1, -0.1, 2, 5, 1000, 2 ** 31];
    const found = given.map((one) => enginePriority(one)!);
    expect(found).toEqual(found.toSorted((a, b) => b - a));
    expect(new Set(found).size).toBe(given.length);
    expect(found.every((one) => one >= 0 && one <= 1)).toBe(true);
    expect(found.map((one) => one > 0.5)).toEqual(given.map((one) => one < 0));
  });

  it('of any whole number reaches the engine', async () => {
    const toy = toyServer(() => say('x'));
    for (const priority of [5, -5, 0.75]) {
      const response = await toy.post('/v1/completions', { prompt: 'a', priority });
      expect(response.status).toBe(200);
    }
    const seen = toy.engine.requests.map(({ priority }) => priority!);
    expect(seen.map((one) => Number(one.toFixed(3)))).toEqual([0.083, 0.917, 0.75]);
    expect((await toy.post('/v1/completions', { prompt: 'a', priority: 'high' })).status).toBe(400);
  });
});
