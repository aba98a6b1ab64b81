import { describe, expect, it } from 'vitest';
import type { Step } from '../../support/fake-engine.js';
import { readChunks, toyServer } from '../../support/toy-server.js';

interface Answer {
  usage: { prompt_tokens: number; prompt_tokens_details: { cached_tokens: number } };
}

/** The first choice of each prompt found 3 of its tokens, the second one 5. */
const script = (_: unknown, index: number): Step[] => [
  { tokens: [97], cachedTokens: index % 2 === 0 ? 3 : 5 },
  { tokens: [98] },
  { finish: 'stop' },
];

describe('cache_salt', () => {
  it('becomes the same number for the same text only, and none without it', async () => {
    const toy = toyServer(script);
    for (const cache_salt of ['a', 'a', 'b', undefined, null]) {
      await toy.post('/v1/completions', { model: 'toy', prompt: 'x', max_tokens: 4, cache_salt });
    }
    const [first, again, other, none, nothing] = toy.engine.requests.map((request) => request.cacheSalt);
    expect(first).toEqual(expect.any(BigInt));
    expect(again).toBe(first);
    expect(other).not.toBe(first);
    expect([none, nothing]).toEqual([undefined, undefined]);
    const refused = await toy.post('/v1/completions', { model: 'toy', prompt: 'x', cache_salt: '' });
    expect(refused.status).toBe(400);
  });
});

describe('cached_tokens', () => {
  it('counts what the first choice of each prompt found, as prompt_tokens counts each prompt once', async () => {
    const body = { model: 'toy', prompt: ['abcdef', 'abcdefg'], n: 2, max_tokens: 4 };
    const { usage } = (await (await toyServer(script).post('/v1/completions', body)).json()) as Answer;
    expect(usage).toMatchObject({ prompt_tokens: 15, prompt_tokens_details: { cached_tokens: 6 } });
  });

  it('stands in the last chunk of a stream', async () => {
    const response = await toyServer(script).post('/v1/chat/completions', {
      model: 'toy',
      messages: [{ role: 'user', content: 'abc' }],
      stream: true,
      stream_options: { include_usage: true },
    });
    const chunks = await readChunks<Answer>(response);
    expect(chunks.at(-1)!.usage.prompt_tokens_details).toEqual({ cached_tokens: 3 });
  });
});
