import Anthropic from '@anthropic-ai/sdk';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { expectIdle } from '../support/metrics.js';
import { type SkeinProcess, startServer } from '../support/skein-process.js';
import { templatedCodec } from '../support/toy-codec.js';
import { listen, say, toyServer } from '../support/toy-server.js';

const question = [{ role: 'user' as const, content: 'What is your name?' }];

describe("Anthropic's package from npm against skein serve", () => {
  let server: SkeinProcess;
  let client: Anthropic;
  const ask = { model: 'smol', temperature: 0, max_tokens: 48, messages: question };

  beforeAll(async () => {
    const limits = [
      '--max-active-requests',
      '16',
      '--max-context-tokens',
      '1024',
      '--kv-cache-tokens',
      '8192',
    ];
    server = await startServer(['--served-model-name', 'smol', ...limits]);
    client = new Anthropic({ baseURL: server.url, apiKey: 'none', maxRetries: 0 });
  });
  afterAll(async () => {
    await server?.stop();
  });

  it('answers whole, and streams the same', async () => {
    const whole = await client.messages.create(ask);
    expect(whole.content).toMatchObject([{ type: 'text', text: expect.stringContaining('Gosling') }]);
    expect(whole._request_id).toMatch(/^req-/);
    const stream = client.messages.stream(ask);
    let text = '';
    stream.on('text', (delta) => {
      text += delta;
    });
    const final = await stream.finalMessage();
    expect(final.content).toEqual(whole.content);
    expect(text).toBe((whole.content[0] as Anthropic.TextBlock).text);
    expect(final.stop_reason).toBe(whole.stop_reason);
    const read = ({ usage }: Anthropic.Message) => usage.input_tokens + usage.cache_read_input_tokens!;
    expect(read(final)).toBe(read(whole));
    const { model, messages } = ask;
    expect(await client.messages.countTokens({ model, messages })).toEqual({ input_tokens: read(whole) });
  });

  it('stops at a stop sequence, and at a limit', async () => {
    const stopped = await client.messages.create({ ...ask, stop_sequences: ['Gosling'] });
    expect(stopped).toMatchObject({ stop_reason: 'stop_sequence', stop_sequence: 'Gosling' });
    const cut = await client.messages.create({ ...ask, max_tokens: 2 });
    expect(cut).toMatchObject({ stop_reason: 'max_tokens', usage: { output_tokens: 2 } });
  });

  it('calls a tool with arguments of its schema', async () => {
    const tool: Anthropic.Tool = {
      name: 'get_weather',
      description: 'The weather of a city.',
      input_schema: {
        type: 'object',
        properties: { city: { enum: ['Paris', 'Rome'] }, days: { type: 'integer', minimum: 1, maximum: 9 } },
        required: ['city', 'days'],
      },
    };
    const tools = { tools: [tool], tool_choice: { type: 'any', disable_parallel_tool_use: true } as const };
    for (const message of [
      await client.messages.create({ ...ask, ...tools, max_tokens: 400 }),
      await client.messages.stream({ ...ask, ...tools, max_tokens: 400 }).finalMessage(),
    ]) {
      expect(message.stop_reason).toBe('tool_use');
      expect(message.content).toHaveLength(1);
      const [used] = message.content as [Anthropic.ToolUseBlock];
      expect(used).toMatchObject({ name: 'get_weather', id: expect.stringMatching(/^toolu_/) });
      const { city, days } = used.input as { city: string; days: number };
      expect(['Paris', 'Rome']).toContain(city);
      expect(days).toBeGreaterThanOrEqual(1);
      const result = { type: 'tool_result' as const, tool_use_id: used.id, content: 'Rain.' };
      const next = await client.messages.create({
        ...ask,
        tools: [tool],
        messages: [
          ...question,
          { role: 'assistant', content: message.content },
          { role: 'user', content: [result] },
        ],
      });
      expect(next.type).toBe('message');
    }
  });

  it('gets JSON of a schema', async () => {
    const schema = {
      type: 'object',
      properties: { age: { type: 'integer', minimum: 0, maximum: 150 } },
      required: ['age'],
      additionalProperties: false,
    };
    const message = await client.messages.create({
      ...ask,
      output_config: { format: { type: 'json_schema', schema } },
    });
    const { age } = JSON.parse((message.content[0] as Anthropic.TextBlock).text) as { age: number };
    expect(age).toBeGreaterThanOrEqual(0);
  });

  it('lists the models, and is told what is wrong', async () => {
    const models = [];
    for await (const model of client.models.list()) models.push(model.id);
    expect(models).toEqual(['smol']);
    expect(await client.models.retrieve('smol')).toMatchObject({ type: 'model', max_input_tokens: 1024 });
    const failed = await client.messages.create({ ...ask, model: 'claude' }).catch((error: unknown) => error);
    expect(failed).toBeInstanceOf(Anthropic.NotFoundError);
    expect(failed).toMatchObject({ type: 'not_found_error', errorCode: 'model_not_found' });
    expect((failed as InstanceType<typeof Anthropic.APIError>).requestID).toMatch(/^req-/);
    const hot = client.messages.create({ ...ask, ...{ temperature: 9 } });
    await expect(hot).rejects.toThrow(Anthropic.BadRequestError);
  });

  it('leaves in the middle of a stream, and nothing is left of its request', async () => {
    const stream = await client.messages.create({ ...ask, max_tokens: 900, stream: true });
    for await (const { type } of stream) if (type === 'content_block_delta') stream.controller.abort();
    await expectIdle(server.url);
  });
});

describe("Anthropic's package from npm with a model that thinks and calls", () => {
  const template =
    '{% if tools %}{{ tools }}<tool_call>{% endif %}{{ messages }}{{ enable_thinking }}<think></think>';
  const text = '<think>Hm.</think>\n\nSo.\n<tool_call>\n{"name": "f", "arguments": {"a": [1]}}\n</tool_call>';

  it('accumulates the events of a stream to the same message', async () => {
    const codec = templatedCodec(template);
    const toy = toyServer(() => say(text), { model: { codec, maxInputLen: 4000, maxSeqLen: 5000 } });
    const { url, close } = await listen(toy);
    const client = new Anthropic({ baseURL: url, apiKey: 'none', maxRetries: 0 });
    const ask: Anthropic.MessageCreateParamsNonStreaming = {
      model: 'toy',
      max_tokens: 2000,
      thinking: { type: 'enabled', budget_tokens: 1024 },
      tools: [{ name: 'f', input_schema: { type: 'object' } }],
      messages: question,
    };
    const whole = await client.messages.create(ask);
    expect(whole.content.map(({ type }) => type)).toEqual(['thinking', 'text', 'tool_use']);
    expect(whole.content[2]).toMatchObject({ name: 'f', input: { a: [1] } });
    const streamed = await client.messages.stream(ask).finalMessage();
    const { id: _, content, ...rest } = JSON.parse(JSON.stringify(whole)) as Anthropic.Message;
    const anyId = (block: Anthropic.ContentBlock) =>
      block.type === 'tool_use' ? { ...block, id: expect.stringMatching(/^toolu_/) } : block;
    expect(JSON.parse(JSON.stringify(streamed))).toMatchObject({ ...rest, content: content.map(anyId) });
    await close();
  });
});
