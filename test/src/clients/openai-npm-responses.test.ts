import OpenAI from 'openai';
import { zodTextFormat } from 'openai/helpers/zod';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import * as z from 'zod';
import { expectIdle } from '../support/metrics.js';
import { type SkeinProcess, startServer } from '../support/skein-process.js';

const question = 'What is your name?';

describe('responses by the openai package from npm against skein serve', () => {
  let server: SkeinProcess;
  let client: OpenAI;
  const model = 'smol';
  const greedy = { model, temperature: 0, max_output_tokens: 48 };

  beforeAll(async () => {
    const limits = [
      '--max-active-requests',
      '16',
      '--max-context-tokens',
      '1024',
      '--kv-cache-tokens',
      '8192',
    ];
    server = await startServer([...['--served-model-name', model], ...limits]);
    client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: 'none', maxRetries: 0 });
  });

  afterAll(async () => {
    await server?.stop();
  });

  it('creates, shows, goes on with, lists and deletes', async () => {
    const first = await client.responses.create({ ...greedy, input: question });
    expect(first.output_text).toContain('Gosling');
    expect(first.status).toBe('completed');
    const shown = await client.responses.retrieve(first.id);
    expect(shown.output).toEqual(first.output);
    const second = await client.responses.create({
      ...greedy,
      previous_response_id: first.id,
      input: 'Another one',
    });
    expect(second.usage!.input_tokens).toBeGreaterThan(
      first.usage!.input_tokens + first.usage!.output_tokens,
    );
    const items: OpenAI.Responses.ResponseItem[] = [];
    for await (const item of client.responses.inputItems.list(second.id, { order: 'asc', limit: 2 }))
      items.push(item);
    expect(items.map((item) => (item as { role?: string }).role)).toEqual(['user', 'assistant', 'user']);
    await client.responses.delete(first.id);
    await expect(client.responses.retrieve(first.id)).rejects.toThrow(OpenAI.NotFoundError);
    await expect(client.responses.cancel(second.id)).rejects.toThrow(OpenAI.BadRequestError);
  });

  it('streams the same text as it answers whole, with events that its accumulator takes', async () => {
    const whole = await client.responses.create({ ...greedy, input: question });
    const stream = client.responses.stream({ ...greedy, input: question });
    let text = '';
    stream.on('response.output_text.delta', ({ delta }) => {
      text += delta;
    });
    const final = await stream.finalResponse();
    expect(text).toBe(whole.output_text);
    expect(final.output_text).toBe(whole.output_text);
    expect(final.usage!.total_tokens).toBe(whole.usage!.total_tokens);
  });

  it('parses answers of a schema', async () => {
    const person = z.object({ name: z.string(), age: z.number().int() });
    const response = await client.responses.parse({
      ...greedy,
      max_output_tokens: 200,
      input: 'A person named Ada who is 36 years old, as JSON.',
      text: { format: zodTextFormat(person, 'person') },
    });
    expect(person.parse(response.output_parsed)).toEqual(response.output_parsed);
  });

  it('calls a function that it has to call, and takes its output', async () => {
    const tool: OpenAI.Responses.FunctionTool = {
      type: 'function',
      name: 'get_weather',
      description: 'The weather of a city.',
      strict: true,
      parameters: {
        type: 'object',
        properties: { city: { type: 'string', enum: ['Paris', 'Rome'] } },
        required: ['city'],
        additionalProperties: false,
      },
    };
    const ask = { ...greedy, max_output_tokens: 100, tools: [tool] };
    const input = 'What is the weather in Paris?';
    const first = await client.responses.create({ ...ask, input, tool_choice: 'required' });
    const call = first.output.find((item) => item.type === 'function_call')!;
    expect(call.name).toBe('get_weather');
    expect(['Paris', 'Rome']).toContain((JSON.parse(call.arguments) as { city: string }).city);
    const second = await client.responses.create({
      ...ask,
      previous_response_id: first.id,
      input: [{ type: 'function_call_output', call_id: call.call_id, output: 'Sunny.' }],
      tool_choice: 'none',
    });
    expect(second.output_text).not.toBe('');
    const stream = client.responses.stream({ ...ask, input, tool_choice: 'required' });
    const streamed = (await stream.finalResponse()).output.find((item) => item.type === 'function_call')!;
    expect(streamed.arguments).toBe(call.arguments);
  });

  it('keeps conversations', async () => {
    const { id } = await client.conversations.create();
    await client.conversations.items.create(id, {
      items: [{ type: 'message', role: 'user', content: 'Hello!' }],
    });
    const response = await client.responses.create({ ...greedy, conversation: id, input: question });
    expect(response.conversation).toEqual({ id });
    const items: OpenAI.Conversations.ConversationItem[] = [];
    for await (const item of client.conversations.items.list(id, {
      ...{ order: 'asc', limit: 1, include: ['message.output_text.logprobs'] },
    }))
      items.push(item);
    expect(items.map((item) => (item as { role?: string }).role)).toEqual(['user', 'user', 'assistant']);
    expect(items.at(-1)).toEqual(response.output[0]);
    const first = items[0] as { id: string };
    expect(await client.conversations.items.retrieve(first.id, { conversation_id: id })).toEqual(first);
    expect((await client.conversations.items.delete(first.id, { conversation_id: id })).id).toBe(id);
    expect((await client.conversations.update(id, { metadata: { a: 'b' } })).metadata).toEqual({ a: 'b' });
    expect((await client.conversations.delete(id)).deleted).toBe(true);
    await expect(client.conversations.retrieve(id)).rejects.toThrow(OpenAI.NotFoundError);
  });

  it('compacts a conversation, and goes on with what is left', async () => {
    const said = { role: 'assistant' as const, content: 'Gosling.' };
    const input: OpenAI.Responses.ResponseInputItem[] = [{ role: 'user', content: question }, said];
    const compacted = await client.responses.compact({ model, input });
    expect(compacted.object).toBe('response.compaction');
    expect(compacted.output.map(({ type }) => type)).toEqual(['message', 'compaction']);
    expect(compacted.usage.output_tokens).toBeGreaterThan(0);
    const next = { role: 'user' as const, content: 'Another one' };
    const answer = await client.responses.create({
      ...greedy,
      input: [...(compacted.output as OpenAI.Responses.ResponseInputItem[]), next],
    });
    expect(answer.output_text).not.toBe('');
    const managed = await client.responses.create({
      ...greedy,
      input: [...input, next],
      context_management: [{ type: 'compaction', compact_threshold: 1 }],
    });
    expect(managed.output.map(({ type }) => type)).toEqual(['compaction', 'message']);
  });

  it('has log-probs where they are included', async () => {
    const response = await client.responses.create({
      ...greedy,
      input: question,
      include: ['message.output_text.logprobs'],
      top_logprobs: 2,
    });
    const [message] = response.output as OpenAI.Responses.ResponseOutputMessage[];
    const part = message!.content[0] as OpenAI.Responses.ResponseOutputText;
    expect(part.logprobs!.map(({ token }) => token).join('')).toBe(part.text);
    for (const { top_logprobs: top, logprob } of part.logprobs!) expect(top[0]!.logprob).toBe(logprob);
  });

  it('is made in the background, and its events are read again', async () => {
    const { id, status } = await client.responses.create({ ...greedy, input: question, background: true });
    expect(status).toBe('in_progress');
    await expect.poll(async () => (await client.responses.retrieve(id)).status).toBe('completed');
    const stream = await client.responses.create({
      ...greedy,
      input: question,
      background: true,
      stream: true,
    });
    const begun: OpenAI.Responses.ResponseStreamEvent[] = [];
    for await (const event of stream) if (begun.push(event) === 5) break;
    const [created] = begun as [OpenAI.Responses.ResponseCreatedEvent];
    const starting_after = begun.at(-1)!.sequence_number;
    const rest = await client.responses.retrieve(created.response.id, { stream: true, starting_after });
    let last: OpenAI.Responses.ResponseStreamEvent | undefined;
    let number = starting_after;
    for await (last of rest) expect(last.sequence_number).toBe(++number);
    expect(last).toMatchObject({ type: 'response.completed' });
    const { response } = last as OpenAI.Responses.ResponseCompletedEvent;
    expect(response.output).toMatchObject([
      { content: [{ text: (await client.responses.retrieve(id)).output_text }] },
    ]);
  });

  it('is cut, refused and aborted as it expects', async () => {
    const cut = await client.responses.create({ ...greedy, max_output_tokens: 2, input: question });
    expect(cut).toMatchObject({ status: 'incomplete', incomplete_details: { reason: 'max_output_tokens' } });
    await expect(
      client.responses.create({ ...greedy, input: question, prompt: { id: 'pmpt_1' } }),
    ).rejects.toMatchObject({
      status: 400,
      param: 'prompt',
    });
    const stream = await client.responses.create({
      ...greedy,
      max_output_tokens: 900,
      input: 'Tell me a story',
      stream: true,
    });
    for await (const event of stream) if (event.type === 'response.output_text.delta') break;
    await expectIdle(server.url);
    const long = await client.responses.create({
      ...greedy,
      max_output_tokens: 900,
      input: 'Tell me a story',
      stream: true,
      top_k: 1,
      ignore_eos: true,
    } as never);
    for await (const event of long as unknown as AsyncIterable<OpenAI.Responses.ResponseStreamEvent>) {
      if (event.type !== 'response.created') continue;
      const cancelled = await client.responses.cancel(event.response.id);
      expect(cancelled.status).toBe('cancelled');
    }
    await expectIdle(server.url);
  });
});
