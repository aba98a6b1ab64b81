import type {
  LanguageModelV3FinishReason,
  LanguageModelV3StreamPart,
  LanguageModelV3Usage,
} from '@ai-sdk/provider';
import type { ChatPiece, ToolCallPart } from '../generation/chat-pieces.js';
import { CollectedAnswer } from '../library/collected-answer.js';

/** What an answer took, as the SDK has it. */
export function usageOf({
  promptTokens,
  cachedTokens,
  generatedTokens,
}: CollectedAnswer): LanguageModelV3Usage {
  return {
    inputTokens: {
      total: promptTokens,
      noCache: promptTokens - cachedTokens,
      cacheRead: cachedTokens,
      cacheWrite: undefined,
    },
    outputTokens: { total: generatedTokens, text: undefined, reasoning: undefined },
  };
}

export function finishReasonOf({ finishReason: raw, calls }: CollectedAnswer): LanguageModelV3FinishReason {
  if (raw === 'stop') return { unified: calls.length > 0 ? 'tool-calls' : 'stop', raw };
  return { unified: raw === 'length' ? 'length' : 'other', raw };
}

/** Cuts an answer into the SDK's parts: texts and reasonings with beginnings and ends, calls as they are written and whole. */
export class StreamParts {
  readonly #answer = new CollectedAnswer();
  #open: { type: 'text' | 'reasoning' | 'tool-input'; id: string } | null = null;
  #texts = 0;

  /** The parts of a piece. */
  of(piece: ChatPiece): LanguageModelV3StreamPart[] {
    this.#answer.add(piece);
    const parts: LanguageModelV3StreamPart[] = [];
    if (piece.reasoning !== undefined) this.#text('reasoning', piece.reasoning, parts);
    if (piece.text !== '') this.#text('text', piece.text, parts);
    for (const part of piece.toolCalls ?? []) this.#call(part, parts);
    if (piece.finishReason !== null) {
      this.#close(parts);
      parts.push({
        type: 'finish',
        usage: usageOf(this.#answer),
        finishReason: finishReasonOf(this.#answer),
      });
    }
    return parts;
  }

  #text(type: 'text' | 'reasoning', delta: string, parts: LanguageModelV3StreamPart[]): void {
    if (this.#open?.type !== type) {
      this.#close(parts);
      this.#open = { type, id: `${type}-${this.#texts++}` };
      parts.push({ type: `${type}-start`, id: this.#open.id });
    }
    parts.push({ type: `${type}-delta`, id: this.#open.id, delta });
  }

  #call({ id, name, arguments: delta }: ToolCallPart, parts: LanguageModelV3StreamPart[]): void {
    if (this.#open?.id !== id) {
      this.#close(parts);
      this.#open = { type: 'tool-input', id };
      parts.push({ type: 'tool-input-start', id, toolName: name });
    }
    if (delta !== '') parts.push({ type: 'tool-input-delta', id, delta });
  }

  #close(parts: LanguageModelV3StreamPart[]): void {
    if (this.#open === null) return;
    const { type, id } = this.#open;
    this.#open = null;
    parts.push({ type: `${type}-end`, id });
    if (type !== 'tool-input') return;
    const { name, arguments: input } = this.#answer.calls.find((call) => call.id === id)!;
    parts.push({ type: 'tool-call', toolCallId: id, toolName: name, input });
  }
}
