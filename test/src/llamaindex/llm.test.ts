import { join } from 'node:path';
import { agent } from '@llamaindex/workflow';
import { Document, type LLMChatParamsNonStreaming, Settings, tool, VectorStoreIndex } from 'llamaindex';
import { ContextLengthError, Encoder, InvalidRequestError, Skein } from 'skein';
import { embedding, llm } from 'skein/llamaindex';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import * as z from 'zod';
import { messagesOf } from '../../../src/llamaindex/prompt-messages.js';
import { TestEngines, tinyModelPath } from '../../../tools/support/test-engine.js';
import { repository } from '../../support/documents.js';
import { testCacheDir } from '../support/skein-process.js';

const engines = new TestEngines();
let skein: Skein;
let encoder: Encoder;
let model: ReturnType<typeof llm>;

beforeAll(async () => {
  const { directory } = await engines.get(tinyModelPath('bert-mean'), 'f32');
  encoder = await Encoder.load({ model: directory, threads: 1 });
  skein = await Skein.load({
    model: join(repository, 'models/demo/gosling'),
    cacheDir: testCacheDir,
    threads: 1,
  });
  model = llm(skein, { temperature: 0.8, seed: 7, maxTokens: 40 });
});
afterAll(async () => {
  await Promise.all([skein?.close(), encoder?.close()]);
  engines.remove();
});

const weather = tool({
  name: 'weather',
  description: 'The weather at a place',
  parameters: z.object({ place: z.enum(['Rome', 'Oslo']) }),
  execute: ({ place }) => `4 degrees in ${place}`,
});
const messages = [{ role: 'user' as const, content: 'Tell me a story about a cat' }];

describe('llm', () => {
  it('answers as Skein does, and says what it took', async () => {
    const { message, raw } = await model.chat({ messages });
    const { text, promptTokens, tokens } = await skein.complete({
      messages,
      temperature: 0.8,
      seed: 7,
      maxTokens: 40,
      tools: [],
    });
    expect(message).toEqual({ role: 'assistant', content: text });
    expect(raw).toMatchObject({ usage: { prompt_tokens: promptTokens, completion_tokens: tokens.length } });
    expect(model.metadata).toMatchObject({
      model: 'gosling',
      temperature: 0.8,
      contextWindow: skein.info.maxSeqLen,
    });
    expect((await model.complete({ prompt: messages[0]!.content })).text).toBe(text);
    const pieces = [];
    for await (const { delta } of await model.chat({ messages, stream: true })) pieces.push(delta);
    expect(pieces.join('')).toBe(text);
    expect(pieces.length).toBeGreaterThan(3);
    const other = await model.chat({ messages, additionalChatOptions: { seed: 8 } });
    expect(other.message.content).not.toBe(text);
  });

  it('calls functions, which LlamaIndex runs, whole and as a stream', async () => {
    const asked = {
      messages: [{ role: 'user' as const, content: 'How is it?' }],
      tools: [weather],
      additionalChatOptions: { toolChoice: 'required', parallelToolCalls: false, maxTokens: 100 } as const,
    };
    const { toolCalls, newMessages } = await model.exec(
      asked as unknown as LLMChatParamsNonStreaming<object, object>,
    );
    expect(toolCalls).toMatchObject([
      { name: 'weather', input: { place: expect.stringMatching(/Rome|Oslo/) } },
    ]);
    expect(newMessages).toHaveLength(2);
    const streamed = await model.exec({ ...asked, stream: true } as never);
    expect(streamed.toolCalls.map(({ name, input }) => ({ name, input }))).toEqual(
      toolCalls.map(({ name, input }) => ({ name, input })),
    );
    const end = await model.chat({
      messages: [...asked.messages, ...(newMessages as typeof messages)],
      tools: [weather],
    });
    expect(typeof end.message.content).toBe('string');
  });

  it('answers in the form of a schema', async () => {
    const schema = z.object({ place: z.enum(['Rome', 'Oslo']), days: z.int().min(1).max(9) });
    for (const responseFormat of [
      schema,
      z.toJSONSchema(schema),
      { type: 'json_schema', json_schema: { name: 'a', schema: z.toJSONSchema(schema) } },
    ]) {
      const { message } = await model.chat({ messages, responseFormat });
      expect(() => schema.parse(JSON.parse(message.content as string))).not.toThrow();
    }
    const { message } = await model.chat({
      messages,
      responseFormat: { type: 'json_object' },
      additionalChatOptions: { maxTokens: 200 },
    });
    expect((message.content as string).trimStart()[0]).toMatch(/[{["\w-]/);
  });

  it('is what an agent asks', async () => {
    const goose = agent({
      llm: llm(skein, { seed: 7, maxTokens: 20, toolChoice: 'none' }),
      tools: [weather],
    });
    const { data } = await goose.run('Hello');
    expect(typeof data.result).toBe('string');
  });

  it('ends where it is aborted or left, and leaves nothing running', async () => {
    const long = { ignoreEos: true, maxTokens: 700 };
    const abort = new AbortController();
    const asked = model.chat({ messages, additionalChatOptions: { ...long, signal: abort.signal } });
    await expect.poll(() => skein.counts.running, { interval: 1 }).toBeGreaterThan(0);
    abort.abort();
    await expect(asked).rejects.toThrow(/abort/i);
    for await (const _ of await model.chat({ messages, stream: true, additionalChatOptions: long })) break;
    await expect.poll(() => skein.counts.running).toBe(0);
  });

  it('refuses with the errors of Skein', async () => {
    const long = [{ role: 'user' as const, content: 'word '.repeat(5000) }];
    await expect(model.chat({ messages: long })).rejects.toBeInstanceOf(ContextLengthError);
    await expect(model.chat({ messages, additionalChatOptions: { heat: 1 } as object })).rejects.toThrow(
      '"heat"',
    );
  });
});

describe('messages of LlamaIndex', () => {
  it('have texts, pictures, calls and results', () => {
    const image = { type: 'image_url' as const, image_url: { url: 'data:image/png;base64,AAAA' } };
    const toolResult = { id: 'c1', result: 'd', isError: false };
    expect(
      messagesOf([
        { role: 'memory', content: 'm' },
        {
          role: 'user',
          content: [
            { type: 'text', text: 'a' },
            image,
            { type: 'image', data: 'AQ==', mimeType: 'image/png' },
          ],
        },
        { role: 'user', content: [{ type: 'text', text: 'alone' }] },
        { role: 'assistant', content: '', options: { toolCall: [{ id: 'c1', name: 'f', input: { x: 1 } }] } },
        { role: 'user', content: 'd', options: { toolResult } },
      ]),
    ).toEqual([
      { role: 'system', content: 'm' },
      {
        role: 'user',
        content: [{ type: 'text', text: 'a' }, image, { type: 'image', image: Buffer.from([1]) }],
      },
      { role: 'user', content: 'alone' },
      {
        role: 'assistant',
        content: '',
        tool_calls: [{ id: 'c1', type: 'function', function: { name: 'f', arguments: '{"x":1}' } }],
      },
      { role: 'tool', tool_call_id: 'c1', content: 'd' },
    ]);
    const audio = { type: 'audio' as const, data: 'AAAA', mimeType: 'audio/wav' };
    expect(() => messagesOf([{ role: 'user', content: [audio] }])).toThrow(
      'A part of the type audio is not read; pictures and texts are.',
    );
  });
});

describe('embedding', () => {
  it('is that of the encoder, and finds documents in an index', async () => {
    const model = embedding(encoder);
    const texts = ['A goose.', 'A cat.'];
    const rows = (await encoder.embed(texts)).map((row) => Array.from(row));
    expect(await model.getTextEmbeddingsBatch(texts)).toEqual(rows);
    expect(await model.getTextEmbedding('A goose.')).toEqual(rows[0]);
    expect(await model.getQueryEmbedding({ type: 'text', text: 'A cat.' })).toEqual(rows[1]);
    const picture = { type: 'image_url', image_url: { url: 'x' } } as const;
    await expect(model.getQueryEmbedding(picture)).rejects.toBeInstanceOf(InvalidRequestError);
    Settings.embedModel = model;
    Settings.llm = llm(skein);
    const index = await VectorStoreIndex.fromDocuments(texts.map((text) => new Document({ text })));
    const [found] = await index.asRetriever({ similarityTopK: 1 }).retrieve('A cat.');
    expect(found!.node.toJSON()).toMatchObject({ text: 'A cat.' });
  });
});
