import OpenAI from 'openai';
import { afterEach, describe, expect, it } from 'vitest';
import { listen, say, toyServer } from '../support/toy-server.js';

let close: () => Promise<void> = async () => {};
afterEach(() => close());

const messages = [{ role: 'user' as const, content: 'Hi' }];

/** A server whose one place is taken for some time, and a client that may come again. */
async function fullServer(takenMs: number, maxRetries: number) {
  const toy = toyServer(
    (_, index) => (index === 0 ? [{ waitMs: takenMs }, ...say('first')] : say('second')),
    {
      maxActive: 1,
    },
  );
  const server = await listen(toy);
  close = server.close;
  const client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: 'none', maxRetries });
  const first = client.chat.completions.create({ model: 'toy', messages });
  await expect.poll(() => toy.engine.active).toBe(1);
  return { toy, client, first };
}

describe('trap 15: the openai package comes again after Retry-After', () => {
  it('and is served when there is room', async () => {
    const { toy, client, first } = await fullServer(100, 2);
    const second = await client.chat.completions.create({ model: 'toy', messages });
    expect(second.choices[0]!.message.content).toBe('second');
    expect((await first).choices[0]!.message.content).toBe('first');
    // The refused request never reached the engine.
    expect(toy.engine.requests).toHaveLength(2);
  });

  it('a stream too, whose refusal came before any of its headers', async () => {
    const { client, first } = await fullServer(100, 2);
    const stream = await client.chat.completions.create({ model: 'toy', messages, stream: true });
    let text = '';
    for await (const chunk of stream) text += chunk.choices[0]?.delta.content ?? '';
    expect(text).toBe('second');
    await first;
  });

  it('and otherwise throws what it was told, with the time to wait', async () => {
    const { client, first } = await fullServer(200, 0);
    const refusal = await client.chat.completions.create({ model: 'toy', messages }).catch((error) => error);
    expect(refusal).toBeInstanceOf(OpenAI.RateLimitError);
    expect(Number(refusal.headers.get('retry-after'))).toBeGreaterThan(0);
    await first;
  });
});
