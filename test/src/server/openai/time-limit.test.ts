import { describe, expect, it } from 'vitest';
import type { Step } from '../../support/fake-engine.js';
import { readChunks, toyServer } from '../../support/toy-server.js';

interface Answer {
  choices: { finish_reason: string | null; stop_reason: string | number | null }[];
}

const tooSlow = (): Step[] => [{ tokens: [97] }, { finish: 'timeout' }];

describe('time_limit_ms', () => {
  it.each([
    ['/v1/completions', { prompt: 'x' }],
    ['/v1/chat/completions', { messages: [{ role: 'user', content: 'x' }] }],
  ])('reaches the engine, and its end is told apart from a full answer (%s)', async (path, body) => {
    const toy = toyServer(tooSlow);
    const whole = (await (await toy.post(path, { ...body, time_limit_ms: 1500 })).json()) as Answer;
    const chunks = await readChunks<Answer>(
      await toy.post(path, { ...body, time_limit_ms: 7, stream: true }),
    );
    expect(toy.engine.requests.map((request) => request.timeLimitMs)).toEqual([1500, 7]);
    for (const { choices } of [whole, chunks.at(-1)!]) {
      expect(choices).toMatchObject([{ finish_reason: 'length', stop_reason: 'time_limit' }]);
    }
    await toy.post(path, body);
    expect(toy.engine.requests.at(-1)!.timeLimitMs).toBeUndefined();
  });

  it.each([0, -1, 1.5, '5'])('refuses %j', async (time_limit_ms) => {
    const refused = await toyServer(tooSlow).post('/v1/completions', { prompt: 'x', time_limit_ms });
    expect(refused.status).toBe(400);
    expect(await refused.json()).toMatchObject({ error: { param: 'time_limit_ms' } });
  });
});
