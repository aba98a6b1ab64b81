import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { tinyModelPath } from '../../tools/support/test-engine.js';
import { expectIdle, metric } from '../src/support/metrics.js';
import { type SkeinProcess, startServer } from '../src/support/skein-process.js';
import { dataFrames } from '../src/support/stream-frames.js';
import { describeExecutors, SERVED } from '../support/executors.js';
import { postJson } from '../support/post-json.js';

const PROMPTS = [
  'ab',
  'hello world',
  'a b c d e f g',
  'once',
  'one two three four five six seven eight',
  'x',
];

const post = (server: SkeinProcess, path: string, body: object, signal: AbortSignal | null = null) =>
  postJson(server.url + path, body, { signal });

interface Completion {
  choices: { text: string; finish_reason: string; logprobs: { token_logprobs: number[] } }[];
  usage: { prompt_tokens: number; completion_tokens: number };
}

interface Chat {
  choices: { message: { content: string } }[];
}

async function complete(server: SkeinProcess, fields: object): Promise<Completion> {
  const response = await post(server, '/v1/completions', {
    max_tokens: 12,
    temperature: 0,
    ignore_eos: true,
    ...fields,
  });
  expect(response.status).toBe(200);
  return (await response.json()) as Completion;
}

/** Text of a stream of completions, and how many of its events had any. */
async function stream(server: SkeinProcess, fields: object): Promise<{ text: string; events: number }> {
  const response = await post(server, '/v1/completions', { stream: true, max_tokens: 12, ...fields });
  const body = await response.text();
  expect(body.trimEnd().endsWith('data: [DONE]')).toBe(true);
  const texts = dataFrames(body).map(({ choices }) => choices[0]?.text ?? '');
  return { text: texts.join(''), events: texts.filter((text) => text !== '').length };
}

const flagsOf = (executor: string) => [
  ...['--model', tinyModelPath('gqa'), '--weights', 'f32', '--executor', executor],
  ...['--max-batch-tokens', '64', '--kv-cache-tokens', '2048'],
];

/** Environment of a server on an executor: the folder into which CI has put TensorFlow. */
const environmentOf = (executor: string): Record<string, string> => {
  const folder = process.env.SKEIN_TEST_TENSORFLOW;
  return executor === 'tensorflow' && folder ? { SKEIN_CACHE_DIR: folder } : {};
};

/** The server whose greedy answers, from weights in f32, every executor must give. */
const native = startServer(flagsOf('native'));
const expected = native.then((server) =>
  Promise.all(PROMPTS.map((prompt) => complete(server, { prompt, logprobs: 0 }))),
);
afterAll(async () => {
  expect((await (await native).stop()).code).toBe(0);
});

describeExecutors((on) => {
  let started: Promise<SkeinProcess>;
  beforeAll(() => {
    started = on.name === 'native' ? native : startServer(flagsOf(on.name), environmentOf(on.name));
  });
  afterAll(async () => {
    if (on.name !== 'native') expect((await (await started).stop()).code).toBe(0);
  });

  describe('a server', () => {
    it('says what computes', async () => {
      const health = (await (await fetch(`${(await started).url}/health`)).json()) as object;
      expect(JSON.stringify(health)).toContain(`"executor":"${on.name}"`);
    });

    it('answers by LoRA adapters, or refuses them at the start by the name of the executor', async () => {
      const path = fileURLToPath(new URL('../fixtures/lora-plain', import.meta.url));
      const flags = [...flagsOf(on.name), '--lora', `plain=${path}`];
      const starting = startServer(flags, environmentOf(on.name));
      if (on.name !== 'native') {
        await expect(starting).rejects.toThrow(`The executor ${on.name} takes no LoRA adapters`);
        return;
      }
      const server = await starting;
      const [text, plain] = await Promise.all(
        ['tiny-gqa', 'plain'].map(async (model) => {
          return (await complete(server, { model, prompt: 'ab' })).choices[0]!.text;
        }),
      );
      expect(text).toBe((await expected)[0]!.choices[0]!.text);
      expect(plain).not.toBe(text);
      await server.stop();
    });

    it('answers greedy prompts as the native executor does, all at once', async () => {
      const server = await started;
      const answers = await Promise.all(PROMPTS.map((prompt) => complete(server, { prompt, logprobs: 0 })));
      for (const [i, answer] of answers.entries()) {
        const [found, wanted] = [answer.choices[0]!, (await expected)[i]!.choices[0]!];
        expect(found.text).toBe(wanted.text);
        expect(answer.usage.completion_tokens).toBe(12);
        for (const [t, logProb] of wanted.logprobs.token_logprobs.entries())
          expect(found.logprobs.token_logprobs[t]).toBeCloseTo(logProb, 3);
      }
    });

    it('streams what it answers whole, sampled by a seed, alone and beside others', async () => {
      const server = await started;
      const fields = (prompt: string) => ({
        prompt,
        temperature: 0.9,
        top_p: 0.9,
        seed: 11,
        ignore_eos: true,
      });
      const alone: string[] = [];
      for (const prompt of PROMPTS) alone.push((await complete(server, fields(prompt))).choices[0]!.text);
      const together = await Promise.all(PROMPTS.map((prompt) => stream(server, fields(prompt))));
      expect(together.map(({ text }) => text)).toEqual(alone);
      for (const { events } of together) expect(events).toBeGreaterThan(2);
    });

    it('keeps to a schema and to stop strings', async () => {
      const server = await started;
      const schema = {
        type: 'object',
        properties: { n: { enum: [1, 22] } },
        required: ['n'],
        additionalProperties: false,
      };
      const chat = await post(server, '/v1/chat/completions', {
        messages: [{ role: 'user', content: 'a number' }],
        response_format: { type: 'json_schema', json_schema: { name: 'n', schema } },
        max_tokens: 60,
        seed: 3,
      });
      const { choices } = (await chat.json()) as { choices: { message: { content: string } }[] };
      expect([1, 22]).toContain((JSON.parse(choices[0]!.message.content) as { n: number }).n);
      const plain = (await expected)[1]!.choices[0]!.text;
      const stop = plain.slice(3, 5);
      const cut = await complete(server, { prompt: PROMPTS[1], stop });
      expect(cut.choices[0]!.text).toBe(plain.slice(0, plain.indexOf(stop)));
      expect(cut.choices[0]!.finish_reason).toBe('stop');
    });

    it('draws several answers of a seed alike whole and again, and streams a chat', async () => {
      const server = await started;
      const draw = async () => {
        const { choices } = await complete(server, { prompt: 'ab', n: 3, seed: 5, temperature: 1 });
        return choices.map(({ text }) => text);
      };
      const drawn = await draw();
      expect(new Set(drawn).size).toBe(3);
      expect(await draw()).toEqual(drawn);
      const ask = { messages: [{ role: 'user', content: 'hello' }], max_tokens: 8, seed: 5 };
      const whole = await (await post(server, '/v1/chat/completions', ask)).json();
      const events = await (await post(server, '/v1/chat/completions', { ...ask, stream: true })).text();
      const pieces = dataFrames(events).map(
        ({ choices }) => (choices[0]?.delta as { content?: string } | undefined)?.content ?? '',
      );
      expect(pieces.join('')).toBe((whole as Chat).choices[0]!.message.content);
    });

    it('ends what clients that leave were being answered, and nobody else’s', async () => {
      const server = await started;
      const generated = () => metric(server.url, 'generation_tokens_total');
      const before = await generated();
      // Each fills the cache, so that the next one has its turn when the one before has left.
      const most = { n: 8, max_tokens: 230 };
      const stays = complete(server, { prompt: PROMPTS[1] });
      const leaving = [...PROMPTS, ...PROMPTS, ...PROMPTS];
      const leaves = leaving.map(async (prompt) => {
        const left = new AbortController();
        const asked = { prompt, stream: true, ignore_eos: true, ...most };
        const response = await post(server, '/v1/completions', asked, left.signal);
        await response.body!.getReader().read();
        left.abort();
      });
      await Promise.all(leaves);
      expect((await stays).choices[0]!.text).toBe((await expected)[1]!.choices[0]!.text);
      await expectIdle(server.url);
      // On a busy machine some are answered before this process has read their beginning.
      const all = leaving.length * most.n * most.max_tokens;
      expect((await generated()) - before).toBeLessThan(all);
    });

    it('refuses a prompt that is too long, and goes on', async () => {
      const server = await started;
      const long = await post(server, '/v1/completions', { prompt: 'ab '.repeat(3000), max_tokens: 4 });
      expect(long.status).toBe(400);
      expect((await complete(server, { prompt: 'ab' })).choices[0]!.text).toBe(
        (await expected)[0]!.choices[0]!.text,
      );
    });
  });
}, SERVED);
