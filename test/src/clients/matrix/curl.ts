import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type OpenAI from 'openai';
import { type Answer, type Ask, type Client, PERSON_SCHEMA, type Place, WEATHER_TOOL } from './client.js';

const run = promisify(execFile);

/** Output of curl for a chat. */
async function post(place: Place, ask: Ask, fields: object, ...args: string[]): Promise<string> {
  const { prompt, maxTokens, temperature = 0 } = ask;
  const body = {
    model: place.model,
    messages: [{ role: 'user', content: prompt }],
    max_tokens: maxTokens,
    temperature,
    ...fields,
  };
  const json = ['-H', 'Content-Type: application/json', '-d', JSON.stringify(body)];
  const always = ['-sS', '-N', '--max-time', '120'];
  return (await run('curl', [...always, ...args, `${place.url}/v1/chat/completions`, ...json])).stdout;
}

async function whole(place: Place, ask: Ask, fields: object = {}): Promise<OpenAI.ChatCompletion> {
  return JSON.parse(await post(place, ask, fields)) as OpenAI.ChatCompletion;
}

async function chunksOf(place: Place, ask: Ask, fields: object = {}): Promise<OpenAI.ChatCompletionChunk[]> {
  const streaming = { stream: true, stream_options: { include_usage: true }, ...fields };
  const lines = (await post(place, ask, streaming)).split('\n').filter((line) => line !== '');
  if (lines.pop() !== 'data: [DONE]') throw new Error('A stream has no end.');
  return lines.map((line) => JSON.parse(line.replace(/^data: /, '')) as OpenAI.ChatCompletionChunk);
}

const called = ({ name, arguments: args }: { name: string; arguments: string }) => ({
  name,
  args: JSON.parse(args) as unknown,
});

export const curl: Client = {
  name: 'curl',
  whole: async (place, ask) => {
    const { choices, usage } = await whole(place, ask);
    return {
      text: choices[0]!.message.content!,
      finish: choices[0]!.finish_reason,
      inputTokens: usage!.prompt_tokens,
      outputTokens: usage!.completion_tokens,
    } satisfies Answer;
  },
  streamed: async (place, ask) => {
    const chunks = await chunksOf(place, ask);
    const texts = chunks.map(({ choices }) => choices[0]?.delta.content ?? '').filter((text) => text !== '');
    const usage = chunks.at(-1)!.usage;
    return {
      text: texts.join(''),
      finish: chunks.flatMap(({ choices }) => choices[0]?.finish_reason ?? [])[0],
      inputTokens: usage?.prompt_tokens,
      outputTokens: usage?.completion_tokens,
      pieces: texts.length,
    };
  },
  calls: async (place, ask, how) => {
    const tools = { tools: [WEATHER_TOOL], tool_choice: 'required', parallel_tool_calls: false };
    if (how === 'whole') {
      const calls = (await whole(place, ask, tools)).choices[0]!.message.tool_calls!;
      return calls.map((call) => called((call as OpenAI.ChatCompletionMessageFunctionToolCall).function));
    }
    const calls: { name: string; arguments: string }[] = [];
    for (const { choices } of await chunksOf(place, ask, tools)) {
      for (const { index, function: part } of choices[0]?.delta.tool_calls ?? []) {
        calls[index] ??= { name: part!.name!, arguments: '' };
        calls[index].arguments += part!.arguments ?? '';
      }
    }
    return calls.map(called);
  },
  person: async (place, ask) => {
    const format = {
      type: 'json_schema',
      json_schema: { name: 'person', schema: PERSON_SCHEMA, strict: true },
    };
    return JSON.parse((await whole(place, ask, { response_format: format })).choices[0]!.message.content!);
  },
  logProbs: async (place, ask) =>
    (await whole(place, ask, { logprobs: true, top_logprobs: 2 })).choices[0]!.logprobs!.content!,
  // Its exit code of a time that is over.
  leave: async (place, ask) => {
    const left: unknown = await post(place, ask, { stream: true, ignore_eos: true }, '--max-time', '1').catch(
      (error) => error,
    );
    if ((left as { code?: number }).code !== 28) throw new Error(`curl did not leave: ${left}`);
  },
  refused: async (place, ask) => {
    const said = await post(place, ask, {}, '-w', '\n%{http_code}');
    const [body, status] = said.split(/\n(?=\d+$)/);
    const { error } = JSON.parse(body!) as { error: { message: string } };
    return { status: Number(status), message: error.message };
  },
  persistent: async (place, ask) => {
    const said = JSON.parse(await post(place, ask, {}, '--fail', '--retry', '9')) as OpenAI.ChatCompletion;
    return said.choices[0]!.message.content!;
  },
};
