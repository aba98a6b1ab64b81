import {
  AIMessage,
  AIMessageChunk,
  type AIMessageChunkFields,
  type AIMessageFields,
  type UsageMetadata,
} from '@langchain/core/messages';
import { ChatGenerationChunk, type ChatResult } from '@langchain/core/outputs';
import type { ChatPiece, ToolCall } from '../generation/chat-pieces.js';
import { argumentsOf } from '../library/chat/run-calls.js';
import { CollectedAnswer } from '../library/collected-answer.js';

/** A whole answer. Calls whose arguments are no JSON object are invalid ones, as elsewhere in LangChain. */
export function answerResult(answer: CollectedAnswer, model: string): ChatResult {
  const { text, reasoning, calls } = answer;
  const fields = {
    content: text,
    ...(reasoning !== '' && { additional_kwargs: { reasoning_content: reasoning } }),
    tool_calls: calls.flatMap((call) => {
      const args = argumentsOf(call.arguments);
      return args === null ? [] : [{ type: 'tool_call' as const, id: call.id, name: call.name, args }];
    }),
    invalid_tool_calls: calls.filter((call) => argumentsOf(call.arguments) === null).map(invalid),
    usage_metadata: usageOf(answer),
    response_metadata: endOf(answer, model),
  };
  // Their types say undefined of usage_metadata where optional properties are exact.
  const message = new AIMessage(fields as object as AIMessageFields);
  return { generations: [{ text, message }], llmOutput: { tokenUsage: tokenUsage(answer) } };
}

/** Makes chunks of an answer's pieces. */
export class AnswerChunks {
  readonly #answer = new CollectedAnswer();
  readonly #model: string;

  constructor(model: string) {
    this.#model = model;
  }

  /** null: the piece has nothing to show. */
  of(piece: ChatPiece): ChatGenerationChunk | null {
    const known = this.#answer.calls.length;
    this.#answer.add(piece);
    const { text, reasoning, toolCalls = [], finishReason } = piece;
    if (text === '' && reasoning === undefined && toolCalls.length === 0 && finishReason === null)
      return null;
    const fields = {
      content: text,
      ...(reasoning !== undefined && { additional_kwargs: { reasoning_content: reasoning } }),
      // LangChain joins the texts of all chunks of a call, so that its id and name come once.
      tool_call_chunks: toolCalls.map(({ index, id, name, arguments: args }, at) => {
        const isFirst = index >= known && !toolCalls.slice(0, at).some((call) => call.index === index);
        return { type: 'tool_call_chunk' as const, index, args, ...(isFirst && { id, name }) };
      }),
      ...(finishReason !== null && {
        usage_metadata: usageOf(this.#answer),
        response_metadata: endOf(this.#answer, this.#model),
      }),
    };
    const message = new AIMessageChunk(fields as object as AIMessageChunkFields);
    return new ChatGenerationChunk({ text, message });
  }
}

function usageOf({ promptTokens, cachedTokens, generatedTokens }: CollectedAnswer): UsageMetadata {
  return {
    input_tokens: promptTokens,
    output_tokens: generatedTokens,
    total_tokens: promptTokens + generatedTokens,
    input_token_details: { cache_read: cachedTokens },
  };
}

function tokenUsage({ promptTokens, generatedTokens }: CollectedAnswer) {
  return { promptTokens, completionTokens: generatedTokens, totalTokens: promptTokens + generatedTokens };
}

function endOf({ stopCause, warnings }: CollectedAnswer, model: string): Record<string, unknown> {
  return { model_name: model, finish_reason: stopCause, ...(warnings.length > 0 && { warnings }) };
}

const invalid = ({ id, name, arguments: args }: ToolCall) => {
  return { type: 'invalid_tool_call' as const, id, name, args, error: 'The arguments are no JSON object.' };
};
