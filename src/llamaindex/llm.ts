import {
  type BaseTool,
  type ChatResponse,
  type ChatResponseChunk,
  type LLMChatParamsNonStreaming,
  type LLMChatParamsStreaming,
  type LLMMetadata,
  ToolCallLLM,
  type ToolCallLLMMessageOptions,
} from '@llamaindex/core/llms';
import { isZodSchema, zodToJsonSchema } from '@llamaindex/core/zod';
import type { ChatPiece } from '../generation/chat-pieces.js';
import type { FunctionTool } from '../generation/tools/types.js';
import type { GenerateOptions } from '../library/answers.js';
import type { ChatSettings } from '../library/chat/chat-types.js';
import { CollectedAnswer, untilEnd } from '../library/collected-answer.js';
import { given } from '../library/foreign-content.js';
import type { Skein } from '../library/skein.js';
import { messagesOf } from './prompt-messages.js';

/** Options of a call by Skein's names, as `additionalChatOptions` has them: `temperature`, `maxTokens`, `signal`, ... */
export type SkeinChatOptions = ChatSettings & Pick<GenerateOptions, 'signal'>;

type Streaming = LLMChatParamsStreaming<SkeinChatOptions, ToolCallLLMMessageOptions>;
type NonStreaming = LLMChatParamsNonStreaming<SkeinChatOptions, ToolCallLLMMessageOptions>;

/**
 * A loaded model as an LLM of LlamaIndex: for chat, complete, exec, engines and agents. @param settings options of all its answers by Skein's
 * names, such as `{ temperature: 0, maxTokens: 200 }`
 */
export function llm(
  skein: Skein,
  settings: ChatSettings = {},
): ToolCallLLM<SkeinChatOptions, ToolCallLLMMessageOptions> {
  return new SkeinLLM(skein, settings);
}

class SkeinLLM extends ToolCallLLM<SkeinChatOptions, ToolCallLLMMessageOptions> {
  readonly supportToolCall = true;
  readonly metadata: LLMMetadata;
  readonly #skein: Skein;
  readonly #settings: ChatSettings;

  constructor(skein: Skein, settings: ChatSettings) {
    super();
    this.#skein = skein;
    this.#settings = settings;
    const { name, maxSeqLen } = skein.info;
    const { temperature = 1, topP = 1, maxTokens } = settings;
    this.metadata = {
      ...{ model: name, temperature, topP, maxTokens, contextWindow: maxSeqLen },
      ...{ tokenizer: undefined, structuredOutput: true },
    };
  }

  override chat(params: Streaming): Promise<AsyncIterable<ChatResponseChunk<ToolCallLLMMessageOptions>>>;
  override chat(params: NonStreaming): Promise<ChatResponse<ToolCallLLMMessageOptions>>;
  override async chat(
    params: Streaming | NonStreaming,
  ): Promise<
    AsyncIterable<ChatResponseChunk<ToolCallLLMMessageOptions>> | ChatResponse<ToolCallLLMMessageOptions>
  > {
    const options = this.#optionsOf(params);
    const pieces = untilEnd(this.#skein.generate(options), options.signal);
    if (params.stream) return chunksOf(pieces);
    const answer = new CollectedAnswer();
    for await (const piece of pieces) answer.add(piece);
    const { text: content } = answer;
    return { message: { role: 'assistant', content, ...callsOf(answer) }, raw: rawOf(answer) };
  }

  #optionsOf({
    messages,
    tools = [],
    responseFormat,
    additionalChatOptions = {},
  }: Streaming | NonStreaming): GenerateOptions {
    return {
      ...this.#settings,
      ...additionalChatOptions,
      ...given({ guided: responseFormat === undefined ? undefined : guideOf(responseFormat) }),
      messages: messagesOf(messages),
      // With a list of tools, an empty one too, reasoning is separated from the answer.
      tools: tools.map(functionOf),
    };
  }
}

function functionOf({ metadata }: BaseTool): FunctionTool {
  const { name, description, parameters } = metadata;
  return { name, description, ...(parameters !== undefined && { parameters: { ...parameters } }) };
}

/** A zod schema, a JSON schema, or OpenAI's response_format, which LlamaIndex passes on too. */
function guideOf(format: object): NonNullable<GenerateOptions['guided']> {
  if (isZodSchema(format)) return { json: zodToJsonSchema(format), isLenient: true };
  const { type, json_schema: named } = format as { type?: string; json_schema?: { schema?: object } };
  if (type === 'json_object') return { json: true };
  return { json: type === 'json_schema' ? (named?.schema ?? true) : format, isLenient: true };
}

/** Texts as they come. Calls come whole, in the last chunk, as those who read the stream run what they find in one. */
async function* chunksOf(
  pieces: AsyncIterable<ChatPiece>,
): AsyncGenerator<ChatResponseChunk<ToolCallLLMMessageOptions>, void, undefined> {
  const answer = new CollectedAnswer();
  for await (const piece of pieces) {
    answer.add(piece);
    const isLast = piece.finishReason !== null;
    if (piece.text === '' && !isLast) continue;
    yield { delta: piece.text, raw: isLast ? rawOf(answer) : null, ...(isLast ? callsOf(answer) : {}) };
  }
}

function callsOf({ calls }: CollectedAnswer): { options?: ToolCallLLMMessageOptions } {
  if (calls.length === 0) return {};
  return { options: { toolCall: calls.map(({ id, name, arguments: input }) => ({ id, name, input })) } };
}

/** What LlamaIndex has no field for, in the fields of OpenAI's API. */
function rawOf({
  reasoning,
  stopCause,
  promptTokens,
  cachedTokens,
  generatedTokens,
  warnings,
}: CollectedAnswer) {
  return {
    finish_reason: stopCause,
    ...(reasoning !== '' && { reasoning_content: reasoning }),
    usage: {
      prompt_tokens: promptTokens,
      completion_tokens: generatedTokens,
      total_tokens: promptTokens + generatedTokens,
      prompt_tokens_details: { cached_tokens: cachedTokens },
    },
    ...(warnings.length > 0 && { warnings }),
  };
}
