import OpenAI from 'openai';
import { zodResponseFormat } from 'openai/helpers/zod';
import { type Answer, type Ask, type Client, PERSON, type Place, WEATHER_TOOL } from './client.js';

const client = ({ url }: Place, maxRetries = 0) =>
  new OpenAI({ baseURL: `${url}/v1`, apiKey: 'none', maxRetries });

const bodyOf = ({ model }: Place, { prompt, maxTokens, temperature = 0 }: Ask) => ({
  model,
  messages: [{ role: 'user' as const, content: prompt }],
  max_tokens: maxTokens,
  temperature,
});

function answerOf({ choices: [choice], usage }: OpenAI.ChatCompletion): Answer {
  return {
    text: choice!.message.content ?? '',
    finish: choice!.finish_reason,
    inputTokens: usage?.prompt_tokens,
    outputTokens: usage?.completion_tokens,
  };
}

export const openaiNpm: Client = {
  name: 'openai from npm',
  whole: async (place, ask) => answerOf(await client(place).chat.completions.create(bodyOf(place, ask))),
  streamed: async (place, ask) => {
    const body = { ...bodyOf(place, ask), stream_options: { include_usage: true } };
    const stream = client(place).chat.completions.stream(body);
    let pieces = 0;
    stream.on('content', () => pieces++);
    return { ...answerOf(await stream.finalChatCompletion()), pieces };
  },
  calls: async (place, ask, how) => {
    const body = {
      ...bodyOf(place, ask),
      tools: [WEATHER_TOOL],
      tool_choice: 'required' as const,
      parallel_tool_calls: false,
    };
    const { completions } = client(place).chat;
    const { choices } =
      how === 'whole' ? await completions.create(body) : await completions.stream(body).finalChatCompletion();
    return choices[0]!.message.tool_calls!.map((call) => {
      if (call.type !== 'function') throw new Error(`a call of type ${call.type}`);
      return { name: call.function.name, args: JSON.parse(call.function.arguments) as unknown };
    });
  },
  person: async (place, ask) => {
    const body = { ...bodyOf(place, ask), response_format: zodResponseFormat(PERSON, 'person') };
    return (await client(place).chat.completions.parse(body)).choices[0]!.message.parsed;
  },
  logProbs: async (place, ask) => {
    const body = { ...bodyOf(place, ask), logprobs: true, top_logprobs: 2 };
    return (await client(place).chat.completions.create(body)).choices[0]!.logprobs!.content!;
  },
  leave: async (place, ask) => {
    const body = { ...bodyOf(place, ask), stream: true as const };
    const stream = await client(place).chat.completions.create(body);
    for await (const { choices } of stream) if (choices[0]?.delta.content) stream.controller.abort();
  },
  refused: async (place, ask) => {
    const error: unknown = await client(place)
      .chat.completions.create(bodyOf(place, ask))
      .catch((thrown: unknown) => thrown);
    if (!(error instanceof OpenAI.APIError)) throw error;
    return { status: error.status, message: error.message };
  },
  persistent: async (place, ask) =>
    answerOf(await client(place, 9).chat.completions.create(bodyOf(place, ask))).text,
};
