import { join } from 'node:path';
import { ChatError, ContextLengthError, Skein, tool } from 'skein';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import * as z from 'zod';
import { repository } from '../../../support/documents.js';
import { testCacheDir } from '../../support/skein-process.js';

const options = {
  model: join(repository, 'models/demo/gosling'),
  cacheDir: testCacheDir,
  threads: 1,
  maxContextTokens: 1024,
};
const weather = tool({
  input: z.object({ place: z.enum(['Rome', 'Oslo']) }),
  execute: ({ place }) => ({ place, degrees: 4 }),
});

describe('Skein.chat', () => {
  let skein: Skein;
  beforeAll(async () => {
    skein = await Skein.load(options);
  });
  afterAll(() => skein?.close());

  it('runs a function that the model has to call, and goes on with what it returned', async () => {
    const chat = await skein.chat({ tools: { weather }, seed: 1 });
    const answer = await chat.send('How is it?', { toolChoice: 'required', parallelToolCalls: false });
    const [call] = answer.calls;
    expect(call).toMatchObject({ name: 'weather', error: null, result: { degrees: 4 } });
    expect(['Rome', 'Oslo']).toContain((call!.arguments as { place: string }).place);
    expect(answer.rounds).toBe(2);
    expect(chat.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'assistant']);
  });

  it('gives an object of a schema, which is an error where it is cut', async () => {
    const chat = await skein.chat({ seed: 1 });
    const object = z.object({ place: z.enum(['Rome', 'Oslo']), days: z.int().min(1).max(9) });
    const answer = await chat.send('Where?', { object });
    expect(object.parse(answer.object)).toEqual(answer.object);
    const cut = chat.send('Where?', { object, maxTokens: 2 });
    await expect(cut).rejects.toBeInstanceOf(ChatError);
    await expect(cut).rejects.toMatchObject({ reason: 'cut' });
  });

  it('says after saving and loading what it would have said', async () => {
    const settings = { temperature: 0, maxTokens: 12 };
    const chat = await skein.chat({ ...settings, system: 'You are a goose.' });
    await chat.send('Who are you?');
    const saved: unknown = JSON.parse(JSON.stringify(chat.save()));
    const again = await skein.chat({ ...settings, saved });
    expect(await again.send('And then?')).toEqual(await chat.send('And then?'));
    const { text } = await skein.complete({ ...settings, messages: again.messages.slice(0, -1) });
    expect(text).toBe(again.messages.at(-1)!.content);
  });

  it.each(['drop', 'summarise'] as const)('goes on for any number of turns: %s', async (whenFull) => {
    const chat = await skein.chat({ whenFull, seed: 3, maxTokens: 40 });
    let left = 0;
    for (let turn = 0; turn < 20; turn++) {
      const text = `Tell me a story of a cat and a goose, number ${turn}. `.repeat(3);
      for await (const event of chat.stream(text)) {
        if (event.type === 'room') left += event.leftOut;
        if (event.type === 'room') expect(event.summary === null).toBe(whenFull === 'drop');
      }
    }
    expect(left).toBeGreaterThan(4);
    expect(chat.messages.at(-1)!.role).toBe('assistant');
  });

  it('shortens a conversation that is far beyond the context', async () => {
    const messages = Array.from({ length: 600 }, (_, i) => ({
      role: i % 2 === 0 ? 'user' : 'assistant',
      content: `Number ${i} of many messages that nobody can read at once.`,
    }));
    const chat = await skein.chat({ messages, maxTokens: 8 });
    await chat.send('Who are you?');
    expect(chat.messages.length).toBeLessThan(200);
    const refusing = await skein.chat({ messages, whenFull: 'refuse' });
    await expect(refusing.send('Who are you?')).rejects.toBeInstanceOf(ContextLengthError);
  });

  it('leaves nothing running where it is aborted', async () => {
    const chat = await skein.chat({ ignoreEos: true });
    const abort = new AbortController();
    const turn = chat.send('Tell me a story', { signal: abort.signal });
    await expect.poll(() => skein.counts.running, { interval: 1 }).toBeGreaterThan(0);
    abort.abort();
    await expect(turn).rejects.toThrow(/abort/);
    await expect.poll(() => skein.counts.running).toBe(0);
  });
});
