import { type FinishReason, HostClosedError } from '../../callbacks/token-request.js';
import type { ChatMessage } from '../../models/chat-message.js';
import { type ChatPiece, CollectedCalls, type ToolCall } from '../generation/chat-pieces.js';

/** What the pieces of an answer add up to. */
export class CollectedAnswer {
  readonly #texts: string[] = [];
  readonly #thoughts: string[] = [];
  readonly #calls = new CollectedCalls();
  readonly #warnings: string[] = [];
  promptTokens = 0;
  /** Number of prompt tokens that the cache had. */
  cachedTokens = 0;
  /** Number of tokens that the model wrote. */
  generatedTokens = 0;
  finishReason: FinishReason = 'cancelled';

  add(piece: ChatPiece): void {
    this.#texts.push(piece.text);
    this.#thoughts.push(piece.reasoning ?? '');
    this.#calls.add(piece.toolCalls ?? []);
    this.#warnings.push(...(piece.warnings ?? []));
    this.promptTokens = piece.promptTokens ?? this.promptTokens;
    this.cachedTokens = piece.cachedTokens ?? this.cachedTokens;
    this.generatedTokens += piece.tokens.length;
    this.finishReason = piece.finishReason ?? this.finishReason;
  }

  get text(): string {
    return this.#texts.join('');
  }

  /** '': the model did not reason. */
  get reasoning(): string {
    return this.#thoughts.join('');
  }

  get calls(): readonly ToolCall[] {
    return this.#calls.list;
  }

  get warnings(): readonly string[] {
    return this.#warnings;
  }

  /** The finish reason as OpenAI's API has it. */
  get stopCause(): string {
    return this.finishReason === 'stop' && this.calls.length > 0 ? 'tool_calls' : this.finishReason;
  }

  /** The answer as a message of a conversation. */
  get message(): ChatMessage {
    return answerMessage(this.text, this.reasoning, this.calls);
  }
}

/** An answer as a message of a conversation. */
export function answerMessage(text: string, reasoning: string, calls: readonly ToolCall[]): ChatMessage {
  return {
    role: 'assistant',
    content: text,
    ...(reasoning !== '' && { reasoning_content: reasoning }),
    ...(calls.length > 0 && {
      tool_calls: calls.map(({ id, name, arguments: json }) => ({
        id,
        type: 'function',
        function: { name, arguments: json },
      })),
    }),
  };
}

/** What a call gave, as a message of a conversation. */
export const resultMessage = (id: string, content: string): ChatMessage => ({
  role: 'tool',
  tool_call_id: id,
  content,
});

/** The pieces of an answer up to its end. @throws the signal's reason, or HostClosedError, where it is cut off */
export async function* untilEnd<Piece extends Pick<ChatPiece, 'finishReason'>>(
  pieces: AsyncIterable<Piece>,
  signal: AbortSignal | undefined,
): AsyncGenerator<Piece, void, undefined> {
  for await (const piece of pieces) {
    if (piece.finishReason === 'cancelled') {
      signal?.throwIfAborted();
      throw new HostClosedError('The engine was closed before this answer was complete.');
    }
    yield piece;
  }
}
