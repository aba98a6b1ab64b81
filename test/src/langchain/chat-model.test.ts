import { join } from 'node:path';
import {
  AIMessage,
  type AIMessageChunk,
  HumanMessage,
  SystemMessage,
  ToolMessage,
  type UsageMetadata,
} from '@langchain/core/messages';
import { ChatPromptTemplate } from '@langchain/core/prompts';
import { tool } from '@langchain/core/tools';
import { ChatOpenAI } from '@langchain/openai';
import { ContextLengthError, Encoder, InvalidRequestError, Skein } from 'skein';
import { chatModel, embeddings, type SkeinChatModel } from 'skein/langchain';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import * as z from 'zod';
import { messagesOf } from '../../../src/langchain/prompt-messages.js';
import { TestEngines, tinyModelPath } from '../../../tools/support/test-engine.js';
import { repository } from '../../support/documents.js';
import { testCacheDir } from '../support/skein-process.js';

const engines = new TestEngines();
let skein: Skein;
let encoder: Encoder;
/** The model by LangChain's interface, and by its class for OpenAI's API in the same process. */
let here: SkeinChatModel;
let there: ChatOpenAI;

beforeAll(async () => {
  const { directory } = await engines.get(tinyModelPath('bert-mean'), 'f32');
  encoder = await Encoder.load({ model: directory, threads: 1 });
  skein = await Skein.load({
    model: join(repository, 'models/demo/gosling'),
    cacheDir: testCacheDir,
    threads: 1,
  });
  here = chatModel(skein, { temperature: 0.8, seed: 7, maxTokens: 160 });
  there = new ChatOpenAI({
    ...{ model: skein.info.name, apiKey: 'none', temperature: 0.8, maxTokens: 160, maxRetries: 0 },
    modelKwargs: { seed: 7 },
    configuration: { baseURL: 'http://localhost/v1', fetch: skein.fetch },
  });
});
afterAll(async () => {
  await Promise.all([skein?.close(), encoder?.close()]);
  engines.remove();
});

const weather = tool(async ({ place }) => `4 degrees in ${place}`, {
  name: 'weather',
  description: 'The weather at a place',
  schema: z.object({ place: z.enum(['Rome', 'Oslo']) }),
});

describe('chatModel beside ChatOpenAI', () => {
  it('gives the same answer, with the same usage and end', async () => {
    const shown = ({
      text,
      usage_metadata,
      response_metadata: { finish_reason: reason },
    }: AIMessageChunk) => {
      const usage = usage_metadata as UsageMetadata | undefined;
      return {
        text,
        reason,
        input: usage?.input_tokens,
        output: usage?.output_tokens,
        total: usage?.total_tokens,
      };
    };
    const question = [new SystemMessage('Be brief.'), new HumanMessage('Tell me a story about a cat')];
    const [one, other] = await Promise.all([here.invoke(question), there.invoke(question)]);
    expect(shown(one)).toEqual(shown(other));
    expect(one.text.length).toBeGreaterThan(20);
    const stopped = await here.invoke(question, { stop: ['.'], skein: { seed: 8 } });
    expect(stopped.text).not.toContain('.');
  });

  it('streams it in pieces that add up, tokens told to callbacks', async () => {
    const tokens: string[] = [];
    const callbacks = [{ handleLLMNewToken: (token: string) => void tokens.push(token) }];
    let whole: AIMessageChunk | null = null;
    for await (const chunk of await here.stream('Tell me a story', { callbacks }))
      whole = whole === null ? chunk : whole.concat(chunk);
    const { text, usage_metadata: usage } = await here.invoke('Tell me a story');
    // The second finds its prompt in the cache.
    const counts = Object.assign({}, usage, { input_token_details: expect.anything() });
    expect(whole).toMatchObject({ text, usage_metadata: counts });
    expect(tokens.join('')).toBe(text);
    expect(tokens.length).toBeGreaterThan(3);
  });

  it('calls the same functions, whole and as a stream, and goes on with their results', async () => {
    const forced = { tool_choice: 'any' } as const;
    const [one, other] = await Promise.all(
      [
        here.bindTools([weather], { ...forced, skein: { parallelToolCalls: false } }),
        there.bindTools([weather], { ...forced, parallel_tool_calls: false }),
      ].map((model) => model.invoke('How is it?')),
    );
    const called = ({ tool_calls: calls = [] }: AIMessage) => calls.map(({ name, args }) => ({ name, args }));
    expect(called(one!)).toEqual(called(other!));
    expect(one!.response_metadata.finish_reason).toBe('tool_calls');
    let streamed: AIMessageChunk | null = null;
    for await (const chunk of await here
      .bindTools([weather], { ...forced, skein: { parallelToolCalls: false } })
      .stream('How is it?'))
      streamed = streamed === null ? chunk : streamed.concat(chunk);
    expect(called(streamed!)).toEqual(called(one!));
    const [call] = one!.tool_calls!;
    const result = (await weather.invoke(call!)) as ToolMessage;
    const history = [new HumanMessage('How is it?'), one!, result];
    const [end, otherEnd] = await Promise.all([
      here.bindTools([weather], { tool_choice: 'none' }).invoke(history),
      there.bindTools([weather], { tool_choice: 'none' }).invoke(history),
    ]);
    expect(end.text).toBe(otherEnd.text);
    const named = await here.bindTools([weather], { tool_choice: 'weather' }).invoke('How is it?');
    expect(named.tool_calls![0]!.name).toBe('weather');
  });

  it('gives objects of a schema, with the message beside where that is asked for', async () => {
    const schema = z.object({ place: z.enum(['Rome', 'Oslo']), days: z.int().min(1).max(9) });
    const found = await here.withStructuredOutput(schema).invoke('Where?');
    expect(schema.parse(found)).toEqual(found);
    const { raw, parsed } = await here.withStructuredOutput(schema, { includeRaw: true }).invoke('Where?');
    expect(JSON.parse(raw.text)).toEqual(parsed);
    const json = {
      type: 'object',
      properties: { a: { enum: ['x', 'y'] } },
      required: ['a'],
      additionalProperties: false,
    };
    expect(['x', 'y']).toContain((await here.withStructuredOutput(json).invoke('Which?')).a);
  });

  it('is a part of a chain, and answers many at once', async () => {
    const chain = ChatPromptTemplate.fromMessages([['human', 'Tell me a story about {what}']]).pipe(here);
    const answers = await chain.batch([{ what: 'a cat' }, { what: 'a goose' }, { what: 'a fox' }]);
    expect(new Set(answers.map(({ text }) => text)).size).toBe(3);
  });

  it('ends where it is aborted or left, and leaves nothing running', async () => {
    const long = { skein: { ignoreEos: true, maxTokens: 700 } };
    const abort = new AbortController();
    const asked = here.invoke('Tell me a story', { ...long, signal: abort.signal });
    await expect.poll(() => skein.counts.running, { interval: 1 }).toBeGreaterThan(0);
    abort.abort();
    await expect(asked).rejects.toThrow(/abort/i);
    for await (const _ of await here.stream('Tell me a story', long)) break;
    await expect(here.invoke('Tell me a story', { ...long, timeout: 20 })).rejects.toThrow(
      /abort|timeout|timed/i,
    );
    await expect.poll(() => skein.counts.running).toBe(0);
  });

  it('refuses with the errors of Skein', async () => {
    await expect(here.invoke('word '.repeat(5000))).rejects.toBeInstanceOf(ContextLengthError);
    await expect(here.invoke('a', { skein: { heat: 1 } as object })).rejects.toThrow('"heat"');
    await expect(here.bindTools([{ type: 'web_search' }]).invoke('a')).rejects.toThrow(
      'A tool is none of LangChain',
    );
    await expect(here.bindTools([weather], { tool_choice: { a: 1 } }).invoke('a')).rejects.toThrow(
      'tool_choice must be',
    );
  });
});

describe('messages of LangChain', () => {
  it('have texts, pictures in each of their forms, calls, results and reasoning', () => {
    const image = { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } };
    const url = 'data:image/png;base64,AAAA';
    const data = Uint8Array.of(1);
    const parts = [
      { type: 'text', text: 'a' },
      image,
      { type: 'image', url, mimeType: 'image/png' },
      { type: 'image', source_type: 'base64', data: 'AQ==', mime_type: 'image/png' },
      { type: 'image', data, mimeType: 'image/png' },
      { type: 'file', data: 'aGk=', mimeType: 'text/plain' },
    ];
    const made = messagesOf([
      new SystemMessage('s'),
      new HumanMessage({ content: parts } as never),
      new HumanMessage({ content: [{ type: 'text', text: 'alone' }] }),
      new AIMessage({
        content: 'b',
        additional_kwargs: { reasoning_content: 'r' },
        tool_calls: [{ id: 'c1', name: 'f', args: { x: 1 } }],
      }),
      new ToolMessage({ content: 'd', tool_call_id: 'c1' }),
    ]);
    expect(made).toEqual([
      { role: 'system', content: 's' },
      {
        role: 'user',
        content: [
          { type: 'text', text: 'a' },
          image,
          image,
          { type: 'image', image: Buffer.from([1]) },
          { type: 'image', image: data },
          { type: 'text', text: 'hi' },
        ],
      },
      { role: 'user', content: 'alone' },
      {
        role: 'assistant',
        content: 'b',
        reasoning_content: 'r',
        tool_calls: [{ id: 'c1', type: 'function', function: { name: 'f', arguments: '{"x":1}' } }],
      },
      { role: 'tool', tool_call_id: 'c1', content: 'd' },
    ]);
  });

  it.each([
    [{ type: 'audio', data: 'AAAA', mimeType: 'audio/wav' }, 'A file of the type audio/wav is not read'],
    [{ type: 'video', fileId: 'x' }, 'A part of the type video is not read'],
  ])('refuse %j', (part, words) => {
    const asked = () => messagesOf([new HumanMessage({ content: [part] } as never)]);
    expect(asked).toThrow(words);
  });
});

describe('embeddings', () => {
  it('are those of the encoder, and none of nothing', async () => {
    const model = embeddings(encoder);
    const texts = ['A goose.', 'A cat.'];
    const rows = (await encoder.embed(texts)).map((row) => Array.from(row));
    expect(await model.embedDocuments(texts)).toEqual(rows);
    expect(await model.embedQuery('A goose.')).toEqual(rows[0]);
    expect(await model.embedDocuments([])).toEqual([]);
    const small = await embeddings(encoder, { dimensions: 4 })
      .embedQuery('A goose.')
      .catch((error: unknown) => error);
    expect(small instanceof InvalidRequestError || (small as number[]).length === 4).toBe(true);
  });
});
