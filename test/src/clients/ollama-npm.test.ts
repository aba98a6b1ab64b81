import { Ollama } from 'ollama';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { freshFolders } from '../../support/fresh-folders.js';
import { expectIdle } from '../support/metrics.js';
import { HUB_ID, type OllamaServer, startOllamaServer } from './ollama-server.js';

const makeFolder = freshFolders('skein-ollama-npm');
const messages = [{ role: 'user', content: 'What is your name?' }];
const options = { temperature: 0, num_predict: 24 };
const asked = { model: 'gosling', messages, options };

describe('the ollama package from npm against skein serve', () => {
  let running: OllamaServer;
  let client: Ollama;

  beforeAll(async () => {
    running = await startOllamaServer(makeFolder());
    client = new Ollama({ host: running.server.url });
  });
  afterAll(() => running?.stop());

  const loaded = async () => (await client.ps()).models.map(({ name }) => name);

  it('chats, whole and as a stream, with a model that it loads', async () => {
    expect(await loaded()).toEqual([]);
    const whole = await client.chat(asked);
    expect(whole.message.content).toContain('Gosling');
    expect(whole).toMatchObject({ done: true, model: 'gosling' });
    expect(whole.eval_count).toBeGreaterThan(3);
    expect(whole.load_duration).toBeGreaterThan(0);
    let text = '';
    for await (const part of await client.chat({ ...asked, stream: true })) text += part.message.content;
    expect(text).toBe(whole.message.content);
    const { models } = await client.ps();
    expect(models.map(({ name }) => name)).toEqual(['gosling:latest']);
    expect(new Date(models[0]!.expires_at).getTime()).toBeGreaterThan(Date.now());
    expect(models[0]!.size).toBeGreaterThan(1e6);
  });

  it('completes, and goes on by the context', async () => {
    const first = await client.generate({ model: 'gosling', prompt: 'Once upon a time', options });
    expect(first.context.length).toBe(first.prompt_eval_count + first.eval_count);
    const { context } = first;
    const next = await client.generate({ model: 'gosling', prompt: 'And then?', context, options });
    expect(next.prompt_eval_count).toBeGreaterThan(context.length);
    const raw = await client.generate({ model: 'gosling', prompt: 'Once', raw: true, options });
    expect(raw.response).toMatch(/\S/);
  });

  it('gets JSON of a schema, and calls of functions that a chat may have', async () => {
    const properties = { name: { type: 'string', enum: ['Gosling', 'Goose'] } };
    const format = { type: 'object', properties, required: ['name'] };
    const { message } = await client.chat({ ...asked, format, options: { ...options, num_predict: 60 } });
    expect(['Gosling', 'Goose']).toContain((JSON.parse(message.content) as { name: string }).name);
    const parameters = { type: 'object', properties: {} };
    const tools = [{ type: 'function', function: { name: 'clock', description: 'The time.', parameters } }];
    const called = [
      ...messages,
      { role: 'assistant', content: '', tool_calls: [{ function: { name: 'clock', arguments: {} } }] },
      { role: 'tool', content: 'noon', tool_name: 'clock' },
    ];
    expect((await client.chat({ ...asked, messages: called, tools })).done).toBe(true);
  });

  it('embeds', async () => {
    const { embeddings } = await client.embed({ model: 'vectors', input: ['a', 'b'] });
    expect(embeddings).toHaveLength(2);
    expect(Math.hypot(...embeddings[0]!)).toBeCloseTo(1, 5);
    expect((await client.embeddings({ model: 'vectors', prompt: 'a' })).embedding).toHaveLength(
      embeddings[0]!.length,
    );
  });

  it('lists and shows models, and asks for the version', async () => {
    const names = (await client.list()).models.map(({ name }) => name);
    expect(names).toEqual(expect.arrayContaining(['gosling:latest', 'vectors:latest']));
    const shown = await client.show({ model: 'gosling' });
    expect(shown.capabilities).toContain('completion');
    expect(shown.details.family).not.toBe('');
    expect((await client.version()).version).toMatch(/^\d+\.\d+/);
  });

  it('is told what is wrong', async () => {
    await expect(client.chat({ ...asked, model: 'none' })).rejects.toMatchObject({
      status_code: 404,
      message: "model 'none' not found",
    });
    const wrong = { ...asked, options: { temperature: -1 } };
    await expect(client.chat(wrong)).rejects.toMatchObject({ status_code: 400 });
  });

  it('leaves a stream, which ends the request', async () => {
    const stream = await client.generate({
      model: 'gosling',
      prompt: 'Once upon a time',
      stream: true,
      options: { num_predict: 800 },
    });
    const read = async () => {
      for await (const { response } of stream) if (response !== '') stream.abort();
    };
    await expect(read()).rejects.toMatchObject({ name: 'AbortError' });
    await expectIdle(running.server.url);
  });

  it('pulls a model, asks it, and deletes it', async () => {
    const statuses: string[] = [];
    for await (const { status } of await client.pull({ model: `hf.co/${HUB_ID}`, stream: true }))
      statuses.push(status);
    expect(statuses.at(-1)).toBe('success');
    const raw = { prompt: 'a', raw: true, options: { num_predict: 2 } };
    expect((await client.generate({ model: `hf.co/${HUB_ID}`, ...raw })).done).toBe(true);
    expect(await loaded()).toContain(`${HUB_ID}:latest`);
    await client.delete({ model: HUB_ID });
    expect(await loaded()).not.toContain(`${HUB_ID}:latest`);
    await expect(client.generate({ model: HUB_ID, ...raw })).rejects.toMatchObject({ status_code: 404 });
    await expect(client.pull({ model: 'skein-tests/none' })).rejects.toThrow(/has no model/);
  });

  it('unloads a model', async () => {
    await client.generate({ model: 'gosling', prompt: '', keep_alive: 0 });
    await expect.poll(loaded).not.toContain('gosling:latest');
  });
});
