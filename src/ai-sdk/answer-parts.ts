import type {
  LanguageModelV3FinishReason,
  LanguageModelV3StreamPart,
  LanguageModelV3Usage,
} from '@ai-sdk/provider';
import type { FinishReason } from '../../callbacks/token-request.js';
import {
  type ChatPiece,
  CollectedCalls,
  type ToolCall,
  type ToolCallPart,
} from '../generation/chat-pieces.js';

/** Counts tokens and calls of an answer, piece by piece. */
export class AnswerSummary {
  readonly #calls = new CollectedCalls();
  #promptTokens = 0;
  #cachedTokens = 0;
  #tokens = 0;
  #reason: FinishReason = 'cancelled';

  add({ promptTokens, cachedTokens, tokens, toolCalls = [], finishReason }: ChatPiece): void {
    this.#promptTokens = promptTokens ?? this.#promptTokens;
    this.#cachedTokens = cachedTokens ?? this.#cachedTokens;
    this.#tokens += tokens.length;
    this.#calls.add(toolCalls);
    this.#reason = finishReason ?? this.#reason;
  }

  get calls(): readonly ToolCall[] {
    return this.#calls.list;
  }

  get usage(): LanguageModelV3Usage {
    const [total, cacheRead, written] = [this.#promptTokens, this.#cachedTokens, this.#tokens];
    return {
      inputTokens: { total, noCache: total - cacheRead, cacheRead, cacheWrite: undefined },
      outputTokens: { total: written, text: undefined, reasoning: undefined },
    };
  }

  get finishReason(): LanguageModelV3FinishReason {
    const raw = this.#reason;
    if (raw === 'stop') return { unified: this.calls.length > 0 ? 'tool-calls' : 'stop', raw };
    return { unified: raw === 'length' ? 'length' : 'other', raw };
  }
}

/** Cuts an answer into the SDK's parts: texts and reasonings with beginnings and ends, calls as they are written and whole. */
export class StreamParts {
  readonly #summary = new AnswerSummary();
  #open: { type: 'text' | 'reasoning' | 'tool-input'; id: string } | null = null;
  #texts = 0;

  /** The parts of a piece. */
  of(piece: ChatPiece): LanguageModelV3StreamPart[] {
    this.#summary.add(piece);
    const parts: LanguageModelV3StreamPart[] = [];
    if (piece.reasoning !== undefined) this.#text('reasoning', piece.reasoning, parts);
    if (piece.text !== '') this.#text('text', piece.text, parts);
    for (const part of piece.toolCalls ?? []) this.#call(part, parts);
    if (piece.finishReason !== null) {
      this.#close(parts);
      const { usage, finishReason } = this.#summary;
      parts.push({ type: 'finish', usage, finishReason });
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
    const { name, arguments: input } = this.#summary.calls.find((call) => call.id === id)!;
    parts.push({ type: 'tool-call', toolCallId: id, toolName: name, input });
  }
}
