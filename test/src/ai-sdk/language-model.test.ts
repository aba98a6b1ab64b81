import { join } from 'node:path';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import type { LanguageModelV3 } from '@ai-sdk/provider';
import {
  embedMany,
  generateObject,
  generateText,
  Output,
  rerank,
  stepCountIs,
  streamText,
  type ToolSet,
  tool,
} from 'ai';
import { ContextLengthError, Encoder, InvalidRequestError, Skein } from 'skein';
import { embeddingModel, languageModel, rerankingModel } from 'skein/ai-sdk';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import * as z from 'zod';
import { TestEngines, tinyModelPath } from '../../../tools/support/test-engine.js';
import { repository } from '../../support/documents.js';
import { postJson } from '../../support/post-json.js';
import { type SkeinProcess, startServer, testCacheDir } from '../support/skein-process.js';

const gosling = join(repository, 'models/demo/gosling');
const engines = new TestEngines();
let skein: Skein;
let encoder: Encoder;
let reranker: Encoder;
let server: SkeinProcess;
let model: LanguageModelV3;
/** The same model behind the server, by the provider for servers of OpenAI's API. */
let remote: ReturnType<typeof createOpenAICompatible>;

beforeAll(async () => {
  const [bert, cross] = await Promise.all(
    ['bert-mean', 'bert-score'].map(
      async (name) => (await engines.get(tinyModelPath(name), 'f32')).directory,
    ),
  );
  skein = await Skein.load({ model: gosling, cacheDir: testCacheDir, threads: 1 });
  encoder = await Encoder.load({ model: bert!, threads: 1 });
  reranker = await Encoder.load({ model: cross!, threads: 1 });
  server = await startServer([
    '--model',
    `lm=${gosling}`,
    '--model',
    `bert=${bert}`,
    '--model',
    `cross=${cross}`,
  ]);
  model = languageModel(skein);
  remote = createOpenAICompatible({
    name: 'skein',
    baseURL: `${server.url}/v1`,
    includeUsage: true,
    supportsStructuredOutputs: true,
  });
});
afterAll(async () => {
  await Promise.all([skein?.close(), encoder?.close(), reranker?.close(), server?.stop()]);
  engines.remove();
});

const weather = tool({
  description: 'The weather at a place',
  inputSchema: z.object({ place: z.enum(['Rome', 'Oslo']) }),
  execute: async ({ place }) => ({ place, degrees: 4 }),
});
const tools = { weather } as unknown as ToolSet;
const asked = {
  prompt: 'Tell me a story about a cat',
  maxOutputTokens: 24,
  seed: 7,
  temperature: 0.8,
  maxRetries: 0,
};

/** Both models' results of one call, which are to be the same. */
async function bothOf<T>(call: (one: LanguageModelV3) => Promise<T>): Promise<T> {
  const [here, there] = await Promise.all([model, remote('lm')].map(call));
  expect(here).toEqual(there);
  return here!;
}

describe('languageModel beside the OpenAI provider and the server', () => {
  it('generates the same text, with the same usage and end', async () => {
    const found = await bothOf(async (one) => {
      const { text, finishReason, usage } = await generateText({ ...asked, model: one });
      return { text, finishReason, input: usage.inputTokens, output: usage.outputTokens };
    });
    expect(found).toMatchObject({ finishReason: 'length', output: 24 });
  });

  it('streams the same text, in pieces', async () => {
    await bothOf(async (one) => {
      const stream = streamText({
        ...asked,
        model: one,
        system: 'Be brief.',
        topP: 0.9,
        stopSequences: ['.'],
      });
      const pieces = [];
      for await (const piece of stream.textStream) pieces.push(piece);
      expect(pieces.length).toBeGreaterThan(1);
      return { text: pieces.join(''), finish: await stream.finishReason };
    });
  });

  it('makes the same objects', async () => {
    const schema = z.object({ place: z.enum(['Rome', 'Oslo']), days: z.int().min(1).max(9) });
    const ask = { ...asked, maxOutputTokens: 100, schema };
    await bothOf(async (one) => (await generateObject({ ...ask, model: one })).object);
    const output = Output.object({ schema });
    await bothOf(async (one) => (await generateText({ ...ask, model: one, output })).output);
  });

  it('calls the same functions, whole and as streams, and goes on with their results', async () => {
    const ask = { ...asked, maxOutputTokens: 100, tools, toolChoice: 'required' as const };
    const providerOptions = { skein: { parallelToolCalls: false, parallel_tool_calls: false } };
    const optionsOf = (one: LanguageModelV3) => {
      const { parallelToolCalls, parallel_tool_calls } = providerOptions.skein;
      const own = one === model ? { parallelToolCalls } : { parallel_tool_calls };
      return { ...ask, model: one, providerOptions: { skein: own } };
    };
    const called = (calls: readonly { toolName: string; input: unknown }[]) =>
      calls.map(({ toolName, input }) => ({ toolName, input }));
    const whole = await bothOf(async (one) => called((await generateText(optionsOf(one))).toolCalls));
    expect(whole).toHaveLength(1);
    expect(await bothOf(async (one) => called(await streamText(optionsOf(one)).toolCalls))).toEqual(whole);
    const steps = await bothOf(async (one) => {
      const prepareStep = ({ stepNumber }: { stepNumber: number }) =>
        stepNumber === 0 ? {} : { toolChoice: 'none' as const };
      const done = await generateText({ ...optionsOf(one), stopWhen: stepCountIs(3), prepareStep });
      return done.steps.map(({ text, toolResults }) => ({
        text,
        results: toolResults.map(({ output }) => output),
      }));
    });
    expect(steps).toHaveLength(2);
    expect(steps[0]!.results).toMatchObject([{ degrees: 4 }]);
    expect(steps[1]!.text).not.toBe('');
  });

  it('embeds and reranks the same', async () => {
    const values = Array.from({ length: 40 }, (_, i) => `the cat sits outside ${i}`);
    const here = await embedMany({ model: embeddingModel(encoder), values });
    const there = await embedMany({ model: remote.embeddingModel('bert'), values, maxParallelCalls: 1 });
    expect(here.embeddings).toEqual(there.embeddings);
    expect(here.usage).toEqual(there.usage);
    const documents = ['a dog', 'the bird sings', 'the cat sits outside'];
    const ranked = await rerank({ model: rerankingModel(reranker), query: 'a cat', documents, topN: 2 });
    const answer = await postJson(`${server.url}/v1/rerank`, {
      model: 'cross',
      query: 'a cat',
      documents,
      top_n: 2,
    });
    const { results } = (await answer.json()) as { results: { index: number; relevance_score: number }[] };
    expect(ranked.ranking.map(({ originalIndex, score }) => [originalIndex, score])).toEqual(
      results.map(({ index, relevance_score }) => [index, relevance_score]),
    );
    const objects = documents.map((text) => ({ text }));
    const ofObjects = await rerank({ model: rerankingModel(reranker), query: 'a cat', documents: objects });
    expect(ofObjects.ranking).toHaveLength(3);
  });
});

describe('languageModel', () => {
  const endless = { ...asked, maxOutputTokens: 900, providerOptions: { skein: { ignoreEos: true } } };

  it('ends its request where it is aborted, whole or in the middle of a stream', async () => {
    const abort = new AbortController();
    const whole = generateText({ ...endless, model, abortSignal: abort.signal });
    await expect.poll(() => skein.counts.running, { interval: 1 }).toBe(1);
    abort.abort();
    await expect(whole).rejects.toThrow(/abort/);
    await expect.poll(() => skein.counts.running).toBe(0);
    const later = new AbortController();
    const stream = streamText({ ...endless, model, abortSignal: later.signal, onError: () => {} });
    for await (const _ of stream.textStream) later.abort();
    await expect.poll(() => skein.counts.running).toBe(0);
  });

  it('ends its request where the stream is left', async () => {
    const { stream } = await model.doStream({
      prompt: [{ role: 'user', content: [{ type: 'text', text: 'Hi' }] }],
      maxOutputTokens: 900,
      providerOptions: endless.providerOptions,
    });
    const reader = stream.getReader();
    await reader.read();
    await reader.cancel();
    await expect.poll(() => skein.counts.running).toBe(0);
  });

  it('fails with the errors of Skein', async () => {
    const long = generateText({ ...asked, model, prompt: 'word '.repeat(9000) });
    await expect(long).rejects.toBeInstanceOf(ContextLengthError);
    const errors: unknown[] = [];
    const wrong = { skein: { minQ: 1 } };
    const stream = streamText({
      ...asked,
      model,
      providerOptions: wrong,
      onError: ({ error }) => void errors.push(error),
    });
    for await (const _ of stream.textStream);
    expect(errors).toMatchObject([expect.any(InvalidRequestError)]);
    const file = { type: 'file' as const, mediaType: 'audio/wav', data: new Uint8Array(3) };
    const audio = generateText({ model, messages: [{ role: 'user', content: [file] }] });
    await expect(audio).rejects.toThrow('A file of the type audio/wav is not read; pictures and texts are.');
    const picture = { type: 'image' as const, image: new Uint8Array(3), mediaType: 'image/png' };
    const seen = generateText({ model, messages: [{ role: 'user', content: [picture] }] });
    await expect(seen).rejects.toThrow('has a picture, which is not taken');
  });

  it('gives parts with beginnings and ends, and warns of what it does not have', async () => {
    const { stream } = await model.doStream({
      prompt: [
        { role: 'system', content: 'Be brief.' },
        {
          role: 'user',
          content: [
            { type: 'text', text: 'How is it?' },
            { type: 'file', mediaType: 'text/plain', data: 'aGVsbG8=' },
          ],
        },
        {
          role: 'assistant',
          content: [
            { type: 'reasoning', text: 'Hm.' },
            { type: 'tool-call', toolCallId: 'call_1', toolName: 'weather', input: { place: 'Rome' } },
          ],
        },
        {
          role: 'tool',
          content: [
            {
              type: 'tool-result',
              toolCallId: 'call_1',
              toolName: 'weather',
              output: { type: 'json', value: 4 },
            },
          ],
        },
      ],
      tools: [
        {
          type: 'function',
          name: 'weather',
          inputSchema: { type: 'object', properties: { place: { enum: ['Rome'] } }, required: ['place'] },
        },
        { type: 'provider', id: 'other.search', name: 'search', args: {} },
      ],
      toolChoice: { type: 'tool', toolName: 'weather' },
      seed: 1,
      maxOutputTokens: 200,
    });
    const parts = [];
    for await (const part of stream) parts.push(part);
    const types = parts.map(({ type }) => type).filter((type, i, all) => type !== all[i - 1]);
    expect(types).toEqual([
      'stream-start',
      'response-metadata',
      'tool-input-start',
      'tool-input-delta',
      'tool-input-end',
      'tool-call',
      'finish',
    ]);
    expect(parts[0]).toMatchObject({
      warnings: [{ type: 'unsupported', feature: 'the provider-defined tool other.search' }],
    });
    const call = parts.find((part) => part.type === 'tool-call');
    expect(JSON.parse(call!.input)).toEqual({ place: 'Rome' });
    expect(parts.at(-1)).toMatchObject({ finishReason: { unified: 'tool-calls' } });
  });
});
