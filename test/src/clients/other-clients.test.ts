import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { ChatOpenAI } from '@langchain/openai';
import { APICallError, generateObject, generateText, streamText, type ToolSet, tool } from 'ai';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import * as z from 'zod';
import { describeWithTestModel, testModelPath } from '../../support/test-model.js';
import { expectIdle } from '../support/metrics.js';
import { type SkeinProcess, startServer } from '../support/skein-process.js';

const run = promisify(execFile);
const question = 'What is the capital of France?';
const person = z.object({ name: z.string().max(20), age: z.number().int().min(0).max(150) });

describeWithTestModel('skein serve', () => {
  let server: SkeinProcess;

  beforeAll(async () => {
    const limits = ['--max-num-sequences', '8', '--max-seq-len', '2048', '--max-tokens', '8192'];
    const names = ['--served-model-name', 'smol', '--tool-call-parser', 'hermes'];
    server = await startServer(['--model', testModelPath!, '--weights', 'bf16', ...limits, ...names]);
  }, 300_000);

  afterAll(async () => {
    await server?.stop();
  });

  describe('to the AI SDK with @ai-sdk/openai-compatible', () => {
    const model = () =>
      createOpenAICompatible({
        name: 'skein',
        baseURL: `${server.url}/v1`,
        includeUsage: true,
        supportsStructuredOutputs: true,
      })('smol');
    const settings = { temperature: 0, maxOutputTokens: 24, maxRetries: 0 };

    it('says the same whole and streamed, and how many tokens it was', async () => {
      const whole = await generateText({ model: model(), prompt: question, ...settings });
      expect(whole.text).toContain('Paris');
      const streamed = streamText({ model: model(), prompt: question, ...settings });
      let text = '';
      for await (const part of streamed.textStream) text += part;
      expect(text).toBe(whole.text);
      expect(await streamed.finishReason).toBe(whole.finishReason);
      expect((await streamed.usage).totalTokens).toBe(whole.usage.totalTokens);
      expect(whole.usage.outputTokens).toBeGreaterThan(0);
    });

    it('answers by a schema', async () => {
      const prompt = 'A person as JSON.';
      const { object } = await generateObject({
        model: model(),
        schema: person,
        prompt,
        ...settings,
        maxOutputTokens: 100,
      });
      expect(person.parse(object)).toEqual(object);
    });

    it('calls the function that it has to, whole and streamed', async () => {
      const weather = tool({ inputSchema: z.object({ city: z.enum(['Paris', 'Rome']) }) });
      const asked = {
        model: model(),
        prompt: 'The weather in Paris?',
        // The two packages are compiled with other strictness than this one.
        tools: { weather } as unknown as ToolSet,
        toolChoice: 'required' as const,
        ...settings,
        maxOutputTokens: 100,
      };
      const whole = await generateText(asked);
      const calls = whole.toolCalls.map(({ toolName, input }) => ({ toolName, input }));
      expect(calls[0]!.toolName).toBe('weather');
      expect(['Paris', 'Rome']).toContain((calls[0]!.input as { city: string }).city);
      const streamed = await streamText(asked).toolCalls;
      expect(streamed.map(({ toolName, input }) => ({ toolName, input }))).toEqual(calls);
    });

    it('throws what the server refuses, with its message, and leaves a stream that it aborts', async () => {
      await expect(
        generateText({ model: model(), prompt: question, ...settings, temperature: 9 }),
      ).rejects.toSatisfy(
        (error) =>
          APICallError.isInstance(error) && error.statusCode === 400 && /temperature/.test(error.message),
      );
      const abort = new AbortController();
      const streamed = streamText({
        model: model(),
        prompt: 'Count to one thousand.',
        ...settings,
        maxOutputTokens: 1500,
        abortSignal: abort.signal,
        onError: () => {},
      });
      for await (const _ of streamed.textStream) abort.abort();
      await expectIdle(server.url);
    });
  });

  describe('to LangChain', () => {
    const chat = (fields: object = {}) =>
      new ChatOpenAI({
        model: 'smol',
        apiKey: 'none',
        configuration: { baseURL: `${server.url}/v1` },
        temperature: 0,
        maxTokens: 24,
        maxRetries: 0,
        ...fields,
      });

    const totalOf = (message: object) =>
      (message as { usage_metadata?: { total_tokens: number } }).usage_metadata?.total_tokens ?? 0;

    it('says the same whole and streamed, with usage and log-probs', async () => {
      const whole = await chat({ logprobs: true, topLogprobs: 2 }).invoke(question);
      expect(whole.content).toContain('Paris');
      const { content } = whole.response_metadata.logprobs as { content: { token: string }[] };
      // The last token may be the start of something that was cut off, but never anything else than text.
      expect((whole.content as string).startsWith(content[0]!.token)).toBe(true);
      let text = '';
      let total = 0;
      for await (const chunk of await chat().stream(question)) {
        text += chunk.content as string;
        total = Math.max(total, totalOf(chunk));
      }
      expect(text).toBe(whole.content);
      expect(total).toBe(totalOf(whole));
      expect(total).toBeGreaterThan(0);
    });

    it('answers by a schema, as JSON and as a function that is called', async () => {
      for (const method of ['jsonSchema', 'functionCalling'] as const) {
        const answer = await chat({ maxTokens: 100 })
          .withStructuredOutput(person, { method, name: 'person' })
          .invoke('A person as JSON.');
        expect(person.parse(answer), method).toEqual(answer);
      }
    });

    it('throws what the server refuses', async () => {
      await expect(chat({ temperature: 9 }).invoke(question)).rejects.toMatchObject({ status: 400 });
      await expect(chat({ model: 'gpt-4' }).invoke(question)).rejects.toMatchObject({ status: 404 });
    });
  });

  describe('to curl', () => {
    const curl = async (...args: string[]) =>
      (await run('curl', ['-sS', '-N', '--max-time', '60', ...args])).stdout;
    const json = ['-H', 'Content-Type: application/json'];
    const body = (fields: object) =>
      JSON.stringify({
        messages: [{ role: 'user', content: question }],
        temperature: 0,
        max_tokens: 24,
        ...fields,
      });
    const chat = () => `${server.url}/v1/chat/completions`;

    it('answers whole, streamed, and to a body that comes in chunks', async () => {
      const whole = JSON.parse(await curl(chat(), ...json, '-d', body({})));
      expect(whole.choices[0].message.content).toContain('Paris');
      const chunked = await curl(chat(), ...json, '-H', 'Transfer-Encoding: chunked', '-d', body({}));
      expect(JSON.parse(chunked).choices[0].message).toEqual(whole.choices[0].message);
      const lines = (await curl(chat(), ...json, '-d', body({ stream: true }))).split('\n');
      expect(lines.filter((line) => line !== '').every((line) => line.startsWith('data: '))).toBe(true);
      expect(lines.filter((line) => line !== '').at(-1)).toBe('data: [DONE]');
      const deltas = lines
        .filter((line) => line.startsWith('data: {'))
        .map((line) => JSON.parse(line.slice(6)));
      const text = deltas.map(({ choices }) => choices[0]?.delta.content ?? '').join('');
      expect(text).toBe(whole.choices[0].message.content);
    });

    it('gets the status, the headers and the shape of a refusal', async () => {
      const refused = await curl('-i', chat(), ...json, '-H', 'X-Request-Id: mine', '-d', body({ top_p: 5 }));
      expect(refused).toMatch(/^HTTP\/1\.1 400 /);
      expect(refused.toLowerCase()).toContain('x-request-id: mine');
      expect(refused).toContain('"param":"top_p"');
    });

    it('goes away in the middle, and nothing is left of its request', async () => {
      const long = body({ stream: true, max_tokens: 1500, ignore_eos: true });
      await expect(
        run('curl', ['-sS', '-N', '--max-time', '1', chat(), ...json, '-d', long]),
      ).rejects.toMatchObject({ code: 28 });
      await expectIdle(server.url);
    });
  });
});
