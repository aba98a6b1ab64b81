import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { describeWithTestModel, testModelPath } from '../../../support/test-model.js';
import { expectIdle } from '../../support/metrics.js';
import { type SkeinProcess, startServer } from '../../support/skein-process.js';
import { testPython } from '../../support/test-python.js';
import { listen, say, toyServer } from '../../support/toy-server.js';
import { aiSdk } from './ai-sdk.js';
import { type Client, PERSON, type Place, WEATHER } from './client.js';
import { curl } from './curl.js';
import { langchain } from './langchain.js';
import { openaiNpm } from './openai-npm.js';
import { PipClient } from './openai-pip.js';

const question = { prompt: 'What is the capital of France?', maxTokens: 24 };

describeWithTestModel('skein serve to its clients', () => {
  const pip = testPython === null ? null : new PipClient();
  const clients: Client[] = [openaiNpm, ...(pip === null ? [] : [pip]), aiSdk, langchain, curl];
  let server: SkeinProcess;
  let place: Place;

  beforeAll(async () => {
    const limits = [
      '--max-active-requests',
      '8',
      '--max-context-tokens',
      '2048',
      '--kv-cache-tokens',
      '8192',
    ];
    const names = ['--served-model-name', 'smol', '--tool-call-parser', 'hermes'];
    server = await startServer(['--model', testModelPath!, '--weights', 'bf16', ...limits, ...names]);
    place = { url: server.url, model: 'smol' };
  });

  afterAll(async () => {
    pip?.close();
    await server?.stop();
  });

  describe.each(clients)('$name', (client) => {
    it('gets an answer as a whole, and how many tokens it was', async () => {
      const answer = await client.whole(place, question);
      expect(answer.text).toContain('Paris');
      expect(answer.inputTokens).toBeGreaterThan(20);
      expect(answer.outputTokens).toBeGreaterThan(2);
      expect(answer.outputTokens).toBeLessThanOrEqual(question.maxTokens);
    });

    it('gets the same as a stream, piece by piece, with its usage', async () => {
      const { pieces, ...streamed } = await client.streamed(place, question);
      expect(streamed).toEqual(await client.whole(place, question));
      expect(pieces).toBeGreaterThan(2);
    });

    it('gets the calls of a function that it asks for, whole and streamed', async () => {
      const ask = { prompt: 'The weather in Paris?', maxTokens: 100 };
      const calls = await client.calls(place, ask, 'whole');
      expect(calls.length).toBeGreaterThan(0);
      for (const { name, args } of calls) {
        expect(name).toBe(WEATHER.name);
        expect(WEATHER.input.parse(args)).toEqual(args);
      }
      expect(await client.calls(place, ask, 'streamed')).toEqual(calls);
    });

    it('gets an answer of the form that it asks for', async () => {
      const person = await client.person(place, { prompt: 'A person as JSON.', maxTokens: 100 });
      expect(PERSON.parse(person)).toEqual(person);
    });

    const { logProbs } = client;
    if (logProbs !== null) {
      it('gets log-probs that fit the text', async () => {
        const tokens = await logProbs(place, question);
        const { text } = await client.whole(place, question);
        // The last token may be the end of the answer, or the start of something that was cut off.
        const said = tokens.map(({ token }) => token).join('');
        expect(said.startsWith(text) || text.startsWith(said)).toBe(true);
        for (const { logprob, top_logprobs: top } of tokens) {
          expect(logprob).toBeLessThanOrEqual(0);
          expect(top.map((entry) => entry.logprob)).toContain(logprob);
          expect(top).toHaveLength(2);
        }
      });
    }

    it('goes away in the middle of a stream, and nothing is left of its request', async () => {
      // An answer that is long: others end before the client has gone.
      await client.leave(place, { prompt: 'Write an essay about the geese of the north.', maxTokens: 1800 });
      await expectIdle(server.url);
    });

    it('is told what the server refuses, and why', async () => {
      const hot = await client.refused(place, { ...question, temperature: 9 });
      expect(hot.status).toBe(400);
      expect(hot.message).toMatch(/'temperature': expected at most 2/);
      const long = await client.refused(place, { ...question, prompt: 'word '.repeat(3000) });
      expect(long.status).toBe(400);
      expect(long.message).toMatch(/2048|2047/);
      const unknown = await client.refused({ ...place, model: 'gpt-4' }, question);
      expect(unknown.status).toBe(404);
      expect(unknown.message).toMatch(/'gpt-4' does not exist/);
    });

    it('comes again when the server is full, after the time that it is told', async () => {
      const toy = toyServer(
        (_, index) => (index === 0 ? [{ waitMs: 100 }, ...say('first')] : say('second')),
        { maxActive: 1 },
      );
      const full = await listen(toy);
      const first = fetch(`${full.url}/v1/completions`, { method: 'POST', body: '{"prompt":"x"}' });
      await expect.poll(() => toy.engine.active).toBe(1);
      expect(await client.persistent({ url: full.url, model: 'toy' }, question)).toBe('second');
      expect((await first).status).toBe(200);
      // The refused request never reached the engine.
      expect(toy.engine.requests).toHaveLength(2);
      await full.close();
    });
  });

  it('curl can send its body in chunks, and name its request', async () => {
    const body = JSON.stringify({ messages: [{ role: 'user', content: question.prompt }], top_p: 5 });
    const headers = ['Content-Type: application/json', 'Transfer-Encoding: chunked', 'X-Request-Id: mine'];
    const args = ['-sSi', `${place.url}/v1/chat/completions`, ...headers.flatMap((line) => ['-H', line])];
    const { stdout } = await promisify(execFile)('curl', [...args, '-d', body]);
    expect(stdout).toMatch(/^HTTP\/1\.1 400 /);
    expect(stdout.toLowerCase()).toContain('x-request-id: mine');
    expect(stdout).toContain('"param":"top_p"');
  });

  it('LangChain gets a form by calling a function too', async () => {
    const { ChatOpenAI } = await import('@langchain/openai');
    const chat = new ChatOpenAI({
      ...{ model: place.model, apiKey: 'none', configuration: { baseURL: `${place.url}/v1` } },
      ...{ maxTokens: 100, temperature: 0, maxRetries: 0 },
    });
    const answer = await chat
      .withStructuredOutput(PERSON, { method: 'functionCalling', name: 'person' })
      .invoke('A person as JSON.');
    expect(PERSON.parse(answer)).toEqual(answer);
  });
});
