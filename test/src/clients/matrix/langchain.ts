import { ContextOverflowError } from '@langchain/core/errors';
import type { AIMessageChunk, UsageMetadata } from '@langchain/core/messages';
import { ChatOpenAI } from '@langchain/openai';
import {
  type Answer,
  type Ask,
  type Client,
  type LogProb,
  PERSON,
  type Place,
  WEATHER_TOOL,
} from './client.js';

function chat({ url, model }: Place, { maxTokens, temperature = 0 }: Ask, fields: object = {}): ChatOpenAI {
  const configuration = { baseURL: `${url}/v1` };
  return new ChatOpenAI({
    model,
    apiKey: 'none',
    configuration,
    maxTokens,
    temperature,
    maxRetries: 0,
    ...fields,
  });
}

function answerOf({ text, response_metadata: metadata, usage_metadata }: AIMessageChunk): Answer {
  const usage = usage_metadata as UsageMetadata | undefined;
  return {
    text,
    finish: metadata.finish_reason as string,
    inputTokens: usage?.input_tokens,
    outputTokens: usage?.output_tokens,
  };
}

async function joined(stream: AsyncIterable<AIMessageChunk>) {
  let whole: AIMessageChunk | null = null;
  let pieces = 0;
  for await (const chunk of stream) {
    if (chunk.text !== '') pieces++;
    whole = whole === null ? chunk : whole.concat(chunk);
  }
  return { message: whole!, pieces };
}

export const langchain: Client = {
  name: '@langchain/openai',
  whole: async (place, ask) => answerOf((await chat(place, ask).invoke(ask.prompt)) as AIMessageChunk),
  streamed: async (place, ask) => {
    const { message, pieces } = await joined(await chat(place, ask).stream(ask.prompt));
    return { ...answerOf(message), pieces };
  },
  calls: async (place, ask, how) => {
    const model = chat(place, ask).bindTools([WEATHER_TOOL], {
      tool_choice: 'required',
      parallel_tool_calls: false,
    });
    const message =
      how === 'whole'
        ? await model.invoke(ask.prompt)
        : (await joined(await model.stream(ask.prompt))).message;
    return message.tool_calls!.map(({ name, args }) => ({ name, args }));
  },
  person: async (place, ask) => {
    const options = { method: 'jsonSchema' as const, name: 'person' };
    return chat(place, ask).withStructuredOutput(PERSON, options).invoke(ask.prompt);
  },
  logProbs: async (place, ask) => {
    const message = await chat(place, ask, { logprobs: true, topLogprobs: 2 }).invoke(ask.prompt);
    return (message.response_metadata.logprobs as { content: LogProb[] }).content;
  },
  leave: async (place, ask) => {
    const abort = new AbortController();
    const stream = await chat(place, ask).stream(ask.prompt, { signal: abort.signal });
    const read = async () => {
      for await (const chunk of stream) if (chunk.text !== '') abort.abort();
    };
    // It throws that it was aborted.
    await read().catch((error: unknown) => {
      if (!abort.signal.aborted) throw error;
    });
  },
  refused: async (place, ask) => {
    const error: unknown = await chat(place, ask)
      .invoke(ask.prompt)
      .catch((thrown: unknown) => thrown);
    if (!(error instanceof Error)) throw error;
    // A prompt beyond the context has a class of its own, around what the server said.
    const told = ContextOverflowError.isInstance(error) ? error.cause! : error;
    return { status: (told as Error & { status?: number }).status, message: error.message };
  },
  persistent: async (place, ask) => {
    const message = await chat(place, ask, { maxRetries: 9 }).invoke(ask.prompt);
    return message.text;
  },
};
