import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { APICallError, generateObject, generateText, streamText, type ToolSet, tool } from 'ai';
import { type Ask, type Client, PERSON, type Place, WEATHER } from './client.js';

function asked({ url, model }: Place, { prompt, maxTokens, temperature = 0 }: Ask, maxRetries = 0) {
  const provider = createOpenAICompatible({
    name: 'skein',
    baseURL: `${url}/v1`,
    includeUsage: true,
    supportsStructuredOutputs: true,
  });
  return { model: provider(model), prompt, maxOutputTokens: maxTokens, temperature, maxRetries };
}

const weather = tool({ description: WEATHER.description, inputSchema: WEATHER.input });
// The packages are compiled with another strictness than this one.
const tools = { [WEATHER.name]: weather } as unknown as ToolSet;

/** Fields of the body that the SDK has no option for. */
const providerOptions = { skein: { parallel_tool_calls: false } };

export const aiSdk: Client = {
  name: 'ai with @ai-sdk/openai-compatible',
  whole: async (place, ask) => {
    const { text, finishReason, usage } = await generateText(asked(place, ask));
    return { text, finish: finishReason, inputTokens: usage.inputTokens, outputTokens: usage.outputTokens };
  },
  streamed: async (place, ask) => {
    const stream = streamText(asked(place, ask));
    let text = '';
    let pieces = 0;
    for await (const piece of stream.textStream) {
      text += piece;
      pieces++;
    }
    const { inputTokens, outputTokens } = await stream.usage;
    return { text, finish: await stream.finishReason, inputTokens, outputTokens, pieces };
  },
  calls: async (place, ask, how) => {
    const options = { ...asked(place, ask), tools, toolChoice: 'required' as const, providerOptions };
    const calls =
      how === 'whole' ? (await generateText(options)).toolCalls : await streamText(options).toolCalls;
    return calls.map(({ toolName, input }) => ({ name: toolName, args: input as unknown }));
  },
  person: async (place, ask) => (await generateObject({ ...asked(place, ask), schema: PERSON })).object,
  logProbs: null,
  leave: async (place, ask) => {
    const abort = new AbortController();
    const stream = streamText({ ...asked(place, ask), abortSignal: abort.signal, onError: () => {} });
    for await (const _ of stream.textStream) abort.abort();
  },
  refused: async (place, ask) => {
    const error: unknown = await generateText(asked(place, ask)).catch((thrown: unknown) => thrown);
    if (!APICallError.isInstance(error)) throw error;
    return { status: error.statusCode, message: error.message };
  },
  persistent: async (place, ask) => (await generateText(asked(place, ask, 9))).text,
};
