import OpenAI from 'openai';
import { zodFunction, zodResponseFormat } from 'openai/helpers/zod';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import * as z from 'zod';
import { EVERYDAY_ZOD } from '../../engine/guided/written/zod-schemas.js';
import { expectIdle, metric } from '../support/metrics.js';
import { type SkeinProcess, startServer } from '../support/skein-process.js';

const messages = [{ role: 'user' as const, content: 'What is your name?' }];

/** A format and a tool by the client's helpers. They refuse what OpenAI's servers would: that is written without them. */
function askedFor(parameters: z.ZodObject) {
  try {
    return {
      response_format: zodResponseFormat(parameters, 'it'),
      tool: zodFunction({ name: 'act', parameters }),
    };
  } catch {
    const schema = z.toJSONSchema(parameters, { io: 'input' }) as Record<string, unknown>;
    const strict = true;
    return {
      response_format: { type: 'json_schema', json_schema: { name: 'it', strict, schema } } as const,
      tool: { type: 'function', function: { name: 'act', strict, parameters: schema } } as const,
    };
  }
}

const argumentsOf = (call: OpenAI.ChatCompletionMessageToolCall) =>
  call.type === 'function' ? call.function.arguments : '';

describe('the openai package from npm against skein serve', () => {
  let server: SkeinProcess;
  let client: OpenAI;
  let model: string;

  beforeAll(async () => {
    const limits = [
      '--max-active-requests',
      '32',
      '--max-context-tokens',
      '1024',
      '--kv-cache-tokens',
      '16384',
    ];
    server = await startServer(['--served-model-name', 'smol', ...limits]);
    client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: 'none', maxRetries: 0 });
    model = (await client.models.list()).data[0]!.id;
  });

  afterAll(async () => {
    await server?.stop();
  });

  /** Nothing runs or waits, and the next request is alone in the KV cache. */
  async function expectEverythingFree(): Promise<void> {
    await expectIdle(server.url);
    const stream = await client.chat.completions.create({
      model,
      messages,
      max_tokens: 200,
      stream: true,
      seed: 1,
    });
    for await (const chunk of stream) if (chunk.choices[0]?.delta.content) break;
    // 237 tokens at most in blocks of 32, of 512 blocks: what was left over would come on top.
    expect(await metric(server.url, 'kv_cache_usage_perc')).toBeLessThanOrEqual(8 / 512);
  }

  it('lists the model under its name', () => {
    expect(model).toBe('smol');
  });

  it('reads answers of a schema by its parse helpers, whole and streamed', async () => {
    const person = z.object({
      name: z.string(),
      age: z.number().int(),
      email: z.string().nullable(),
      tags: z.array(z.enum(['a', 'b'])).max(3),
    });
    const request = {
      model,
      messages: [{ role: 'user' as const, content: 'A person as JSON.' }],
      response_format: zodResponseFormat(person, 'person'),
      max_tokens: 300,
      temperature: 0,
    };
    const whole = await client.chat.completions.parse(request);
    expect(whole.choices[0]!.finish_reason).toBe('stop');
    expect(person.parse(whole.choices[0]!.message.parsed)).toEqual(whole.choices[0]!.message.parsed);
    const streamed = await client.chat.completions.stream(request).finalChatCompletion();
    expect(streamed.choices[0]!.message.parsed).toEqual(whole.choices[0]!.message.parsed);
  });

  it('follows schemas as people write them with Zod, in answers and in calls', async () => {
    const ask = { model, messages, max_tokens: 64, seed: 1 };
    const faults: string[] = [];
    const numWhole = { answers: 0, calls: 0 };
    // A third of them, each in one of the two ways, which lead to the same grammar: engine/guided/written has every schema followed.
    const check = async (
      [name, [schema]]: readonly [string, readonly [z.ZodType, ...unknown[]]],
      isCall: boolean,
    ): Promise<void> => {
      const parameters = z.object({ it: schema });
      const { response_format, tool } = askedFor(parameters);
      const way = isCall ? { tools: [tool], tool_choice: 'required' as const } : { response_format };
      const [choice] = (await client.chat.completions.create({ ...ask, ...way })).choices;
      if (choice!.finish_reason === 'length') return;
      const { content, tool_calls: calls } = choice!.message;
      const text = isCall ? calls?.map(argumentsOf).join() : content;
      numWhole[isCall ? 'calls' : 'answers']++;
      const read = parameters.safeParse(JSON.parse(text!));
      if (!read.success) faults.push(`${name}: ${text}: ${read.error.message}`);
    };
    const some = Object.entries(EVERYDAY_ZOD).filter((_, i) => i % 3 === 0);
    await Promise.all(some.map((schema, i) => check(schema, i % 2 === 1)));
    expect(faults).toEqual([]);
    expect(numWhole.answers).toBeGreaterThan(0);
    expect(numWhole.calls).toBeGreaterThan(0);
  });

  it('tells what it was asked for, streamed and whole, and says the same both ways', async () => {
    const request = { model, messages, temperature: 0, max_tokens: 24 };
    const whole = await client.chat.completions.create(request);
    expect(whole.choices[0]!.message.content).toContain('Gosling');
    const runner = client.chat.completions.stream({ ...request, stream_options: { include_usage: true } });
    const final = await runner.finalChatCompletion();
    expect(final.choices[0]!.message.content).toBe(whole.choices[0]!.message.content);
    expect(final.choices[0]!.finish_reason).toBe(whole.choices[0]!.finish_reason);
    expect((await runner.totalUsage()).total_tokens).toBe(whole.usage!.total_tokens);
  });

  it('trap 9: a rendered template is encoded as it stands, with no second BOS', async () => {
    const answer = await client.chat.completions.create({ model, messages, max_tokens: 1 });
    const rendered = '<|im_start|>user\nWhat is your name?<|im_end|>\n<|im_start|>assistant\n';
    const plain = await client.completions.create({ model, prompt: rendered, max_tokens: 1 });
    expect(answer.usage!.prompt_tokens).toBe(plain.usage!.prompt_tokens);
  });

  it('trap 14: special-token text inside user content stays text', async () => {
    const count = async (content: string) => {
      const request = { model, messages: [{ role: 'user' as const, content }], max_tokens: 1 };
      return (await client.chat.completions.create(request)).usage!.prompt_tokens;
    };
    expect((await count('<|im_end|>')) - (await count(''))).toBeGreaterThan(1);
  });

  it('completes a prompt, with log-probs that fit the text', async () => {
    const answer = await client.completions.create({
      model,
      prompt: 'Once upon a time',
      temperature: 0,
      max_tokens: 4,
      logprobs: 2,
    });
    const { text, logprobs } = answer.choices[0]!;
    expect(logprobs!.tokens!.join('')).toBe(text);
    expect(logprobs!.token_logprobs).toHaveLength(4);
    for (const [index, best] of logprobs!.top_logprobs!.entries()) {
      expect(Math.max(...Object.values(best))).toBe(logprobs!.token_logprobs![index]);
    }
  });

  it('trap 13: gives the same answer for the same seed, alone and beside others', async () => {
    const request = { model, messages, temperature: 1, seed: 7, max_tokens: 24 };
    const text = async () => (await client.chat.completions.create(request)).choices[0]!.message.content;
    const alone = await text();
    const others = Array.from({ length: 8 }, (_, index) =>
      client.chat.completions.create({ ...request, seed: 100 + index }),
    );
    expect(await text()).toBe(alone);
    await Promise.all(others);
  });

  it('throws its own errors for what the server refuses', async () => {
    await expect(client.chat.completions.create({ model: 'gpt-4', messages })).rejects.toThrow(
      OpenAI.NotFoundError,
    );
    const long = { model, prompt: 'word '.repeat(2000), max_tokens: 10 };
    await expect(client.completions.create(long)).rejects.toMatchObject({
      status: 400,
      code: 'context_length_exceeded',
    });
    const wrong = { model, messages, temperature: 'hot' as unknown as number };
    await expect(client.chat.completions.create(wrong)).rejects.toThrow(OpenAI.BadRequestError);
  });

  it('stops generating when the stream is aborted', async () => {
    const stream = await client.chat.completions.create({
      model,
      messages: [{ role: 'user', content: 'Tell me a story' }],
      max_tokens: 900,
      stream: true,
    });
    for await (const chunk of stream) if (chunk.choices[0]?.delta.content) break;
    await expectEverythingFree();
  });

  it('serves 40 at once of which half leave: the rest end well and all blocks come back', async () => {
    const answers = await Promise.all(
      Array.from({ length: 40 }, async (_, index) => {
        const stream = await client.chat.completions.create({
          model,
          messages: [{ role: 'user', content: `Write about the number ${index}.` }],
          max_tokens: 24,
          seed: index,
          ignore_eos: true,
          stream: true,
        } as OpenAI.ChatCompletionCreateParamsStreaming);
        let chunks = 0;
        for await (const chunk of stream) {
          if (chunk.choices[0]?.finish_reason) return 'finished';
          // The odd ones leave, each after another number of chunks.
          if (index % 2 === 1 && ++chunks > index % 7) return 'left';
        }
        return 'cut';
      }),
    );
    expect(answers.filter((_, index) => index % 2 === 0)).toEqual(Array(20).fill('finished'));
    expect(answers).not.toContain('cut');
    await expectEverythingFree();
  });
});
