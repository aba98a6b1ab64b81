import { join } from 'node:path';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import Anthropic from '@anthropic-ai/sdk';
import { ChatOpenAI } from '@langchain/openai';
import { generateText, streamText } from 'ai';
import { Ollama } from 'ollama';
import OpenAI, { APIUserAbortError } from 'openai';
import { Skein } from 'skein';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { repository } from '../../support/documents.js';
import { testCacheDir } from '../support/skein-process.js';

/** No server has this name: whatever opens a socket fails. */
const HOST = 'http://skein.invalid';
const MANY = 16;
const QUESTION = { role: 'user' as const, content: 'What is your name?' };

describe('clients that have skein.fetch in place of the global one', () => {
  let skein: Skein;
  let model: string;
  let expected: string;
  let openai: OpenAI;

  beforeAll(async () => {
    skein = await Skein.load({
      model: join(repository, 'models/demo/gosling'),
      cacheDir: testCacheDir,
      threads: 1,
    });
    model = skein.info.name;
    openai = new OpenAI({ baseURL: `${HOST}/v1`, apiKey: 'none', maxRetries: 0, fetch: skein.fetch });
    const { text } = await skein.complete({ messages: [QUESTION], maxTokens: 12, temperature: 0 });
    expected = text;
  });
  afterAll(() => skein?.close());

  const asked = () => ({ model, messages: [QUESTION], max_tokens: 12, temperature: 0 });

  /** Runs for as long as the model can: nothing of it ends before it is aborted. */
  const endless = () => ({ ...asked(), n: MANY, max_tokens: 900, ignore_eos: true });

  it('are openai, whole and as a stream', async () => {
    const whole = await openai.chat.completions.create(asked());
    expect(whole.choices[0]!.message.content).toBe(expected);
    let text = '';
    for await (const { choices } of await openai.chat.completions.create({ ...asked(), stream: true }))
      text += choices[0]?.delta.content ?? '';
    expect(text).toBe(expected);
  });

  it('see the errors of the server as their own', async () => {
    await expect(openai.chat.completions.create({ ...asked(), model: 'other' })).rejects.toThrow(
      OpenAI.NotFoundError,
    );
    await expect(openai.chat.completions.create({ ...asked(), temperature: -1 })).rejects.toThrow(
      OpenAI.BadRequestError,
    );
  });

  it('can abort: openai before the answer and in its middle, and nothing of it runs on', async () => {
    const signal = AbortSignal.abort();
    await expect(openai.chat.completions.create(asked(), { signal })).rejects.toThrow(APIUserAbortError);
    const abort = new AbortController();
    const waiting = openai.chat.completions.create(endless(), { signal: abort.signal });
    await expect.poll(() => skein.counts.running, { interval: 1 }).toBeGreaterThan(0);
    abort.abort();
    await expect(waiting).rejects.toThrow(APIUserAbortError);
    await expect.poll(() => skein.counts.running).toBe(0);

    const stream = await openai.chat.completions.create({ ...endless(), n: 1, stream: true });
    let pieces = 0;
    for await (const _ of stream) if (++pieces === 3) stream.controller.abort();
    expect(pieces).toBe(3);
    await expect.poll(() => skein.counts.running).toBe(0);
  });

  it('are the AI SDK, whole and as a stream', async () => {
    const provider = createOpenAICompatible({ name: 'skein', baseURL: `${HOST}/v1`, fetch: skein.fetch });
    const given = { model: provider(model), prompt: QUESTION.content, maxOutputTokens: 12, temperature: 0 };
    expect((await generateText(given)).text).toBe(expected);
    let text = '';
    for await (const part of streamText(given).textStream) text += part;
    expect(text).toBe(expected);
  });

  it('are LangChain.js, whole and as a stream', async () => {
    const chat = new ChatOpenAI({
      model,
      apiKey: 'none',
      maxTokens: 12,
      temperature: 0,
      configuration: { baseURL: `${HOST}/v1`, fetch: skein.fetch },
    });
    expect((await chat.invoke(QUESTION.content)).content).toBe(expected);
    let text = '';
    for await (const { content } of await chat.stream(QUESTION.content)) text += content;
    expect(text).toBe(expected);
  });

  it('are those of Anthropic and Ollama', async () => {
    const anthropic = new Anthropic({ baseURL: HOST, apiKey: 'none', maxRetries: 0, fetch: skein.fetch });
    const { content } = await anthropic.messages.create(asked());
    expect(content).toMatchObject([{ type: 'text', text: expected }]);
    const ollama = new Ollama({ host: HOST, fetch: skein.fetch as typeof fetch });
    const { message } = await ollama.chat({
      model,
      messages: [QUESTION],
      options: { num_predict: 12, temperature: 0 },
    });
    expect(message.content).toBe(expected);
  });
});
