import type { ChatMessage } from '../../../models/chat-template.js';
import type { TextLogProb, TextPiece } from '../../generation/text-generation.js';
import type { ServedGenerator } from '../served-model.js';
import { ChoiceRun } from './choice-run.js';
import { Envelope } from './envelope.js';
import { ApiError } from './errors.js';
import { chatLogProbs } from './log-probs.js';
import type { Exchange, FrameWriter } from './respond.js';
import { respondWithStream } from './respond.js';
import type { RouteContext } from './route-context.js';
import { findGenerator } from './route-context.js';
import type { ChatRequest, ChatRequestMessage } from './schemas/chat.js';
import { badWordsOf, chatMaxTokens, choiceCounts, textRequest } from './text-request.js';
import { finishReason, stopReason } from './usage.js';

/** POST /v1/chat/completions with a body that its schema has taken. */
export async function chatCompletions(
  context: RouteContext,
  request: ChatRequest,
  exchange: Exchange,
): Promise<Response> {
  checkCombinations(request);
  const model = findGenerator(context, request.model);
  const promptTokens = await model.codec.encodeChat(request.messages.map(templateMessage), {
    addGenerationPrompt: request.add_generation_prompt ?? !request.continue_final_message,
    continueFinalMessage: request.continue_final_message ?? false,
    variables: request.chat_template_kwargs,
  });
  const asked = request.max_completion_tokens ?? request.max_tokens;
  const maxTokens = chatMaxTokens(model, asked, promptTokens.length);
  const logProbs = request.logprobs ? (request.top_logprobs ?? 0) : undefined;
  const badWords = await badWordsOf(request, model);
  const choice = textRequest(request, {
    promptTokens,
    promptParam: 'messages',
    maxTokens,
    badWords,
    logProbs,
  });
  const run = new ChoiceRun(model, [choice], choiceCounts(request), context.observe);
  const answer = new ChatAnswer(model, request, promptTokens.length, run);
  if (request.stream) {
    return respondWithStream(run, answer.frameWriter(), context.eventStream, exchange);
  }
  return answer.whole(exchange.signal);
}

function checkCombinations(request: ChatRequest): void {
  if (request.continue_final_message) {
    if (request.add_generation_prompt) {
      throw new ApiError(400, "'continue_final_message' and 'add_generation_prompt' exclude each other.", {
        param: 'continue_final_message',
      });
    }
    if (request.messages.at(-1)?.role !== 'assistant') {
      throw new ApiError(400, "'continue_final_message' needs a last message of the assistant.", {
        param: 'continue_final_message',
      });
    }
  }
  if (request.top_logprobs !== undefined && request.top_logprobs > 0 && !request.logprobs) {
    throw new ApiError(400, "'top_logprobs' needs 'logprobs' to be true.", { param: 'top_logprobs' });
  }
  if (request.stream_options !== undefined && !request.stream) {
    throw new ApiError(400, "'stream_options' needs 'stream' to be true.", { param: 'stream_options' });
  }
}

/** A message as templates know it: with the older name of the system role, and no field that was not given. */
function templateMessage(message: ChatRequestMessage): ChatMessage {
  const { role, content, name } = message;
  const result: ChatMessage = { role: role === 'developer' ? 'system' : role, content: content ?? null };
  if (name !== undefined) result.name = name;
  if (message.role === 'assistant' && message.tool_calls !== undefined) {
    result.tool_calls = message.tool_calls;
  }
  if ('tool_call_id' in message && message.tool_call_id !== undefined) {
    result.tool_call_id = message.tool_call_id;
  }
  return result;
}

class ChatAnswer {
  readonly #model: ServedGenerator;
  readonly #request: ChatRequest;
  readonly #envelope: Envelope;

  constructor(model: ServedGenerator, request: ChatRequest, promptTokens: number, run: ChoiceRun) {
    this.#model = model;
    this.#request = request;
    this.#envelope = new Envelope({ model, run, promptTokens, idPrefix: 'chatcmpl' });
  }

  #logProbs(entries: readonly TextLogProb[]) {
    return this.#request.logprobs ? chatLogProbs(this.#model.codec, entries) : null;
  }

  whole(clientSignal: AbortSignal): Promise<Response> {
    return this.#envelope.whole('chat.completion', clientSignal, (choice, index) => ({
      index,
      message: { role: 'assistant', content: choice.text, refusal: null },
      logprobs: this.#logProbs(choice.logProbs),
      finish_reason: choice.finish,
      stop_reason: choice.stopReason,
    }));
  }

  frameWriter(): FrameWriter {
    const { chunk, end } = this.#envelope.frames('chat.completion.chunk', this.#request.stream_options);
    const begun = new Set<number>();
    const begin = (index: number): string => {
      if (begun.has(index)) return '';
      begun.add(index);
      return chunk(
        `{"index":${index},"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}`,
      );
    };
    const delta = (index: number, piece: TextPiece): string => {
      if (piece.text === '' && piece.logProbs.length === 0) return '';
      const logProbs = JSON.stringify(this.#logProbs(piece.logProbs));
      return chunk(
        `{"index":${index},"delta":{"content":${JSON.stringify(piece.text)}},"logprobs":${logProbs},"finish_reason":null}`,
      );
    };
    const finish = (index: number, piece: TextPiece): string => {
      if (piece.finishReason === null) return '';
      const reason = finishReason(piece.finishReason);
      const stop = JSON.stringify(stopReason(piece));
      return chunk(
        `{"index":${index},"delta":{},"logprobs":null,"finish_reason":"${reason}","stop_reason":${stop}}`,
      );
    };
    return {
      piece: (index, piece) => begin(index) + delta(index, piece) + finish(index, piece),
      end,
    };
  }
}
