import { randomBytes, randomUUID } from 'node:crypto';
import type { ChatPlan } from './chat-plan.js';
import type { TextPiece } from './text-generation.js';
import type { AnswerPart } from './tools/types.js';

/** A part of a call of a function; `arguments` of all parts with its index, joined, are its arguments as JSON. */
export interface ToolCallPart {
  /** Place of the call among those of the answer. */
  index: number;
  /** Id of the call, which the message with its result names. */
  id: string;
  name: string;
  arguments: string;
}

/** A piece of an answer whose reasoning and calls are separated from its text. */
export interface ChatPiece extends TextPiece {
  /** Reasoning that is new since the last piece; absent: there is none. */
  reasoning?: string;
  /** Calls, or parts of them, that are new since the last piece; absent: there are none. */
  toolCalls?: readonly ToolCallPart[];
  /** In the first piece of Skein.generate: number of prompt tokens. */
  promptTokens?: number;
  /** In the first piece: what was changed about the functions, so that the model's chat template took them, and what of a schema is not followed; absent: nothing. */
  warnings?: readonly string[];
}

/** A whole call of a function. */
export interface ToolCall {
  id: string;
  name: string;
  /** JSON, unless the model wrote something else. */
  arguments: string;
}

/** Separates text, reasoning and calls of an answer, piece by piece. */
export async function* chatPieces(
  pieces: AsyncIterable<TextPiece>,
  { createParser, callIds, warnings }: Pick<ChatPlan, 'createParser' | 'callIds' | 'warnings'>,
): AsyncGenerator<ChatPiece, void, undefined> {
  const parser = createParser?.() ?? null;
  const calls: { id: string; name: string }[] = [];
  let isFirst = true;
  for await (const made of pieces) {
    const piece = isFirst && warnings.length > 0 ? { ...made, warnings } : made;
    isFirst = false;
    if (parser === null) {
      yield piece;
      continue;
    }
    const parts = parser.push(piece.text);
    if (piece.finishReason !== null) parts.push(...parser.end());
    yield { ...piece, ...told(parts, calls, callIds) };
  }
}

function told(
  parts: readonly AnswerPart[],
  calls: { id: string; name: string }[],
  callIds: ChatPlan['callIds'],
): Pick<ChatPiece, 'text' | 'reasoning' | 'toolCalls'> {
  let text = '';
  let reasoning = '';
  const toolCalls: ToolCallPart[] = [];
  for (const part of parts) {
    if (part.type === 'content') text += part.text;
    else if (part.type === 'reasoning') reasoning += part.text;
    else if (part.type === 'call') {
      const call = { id: newId(callIds), name: part.name };
      calls.push(call);
      toolCalls.push({ index: calls.length - 1, ...call, arguments: '' });
    } else {
      const index = calls.length - 1;
      const last = toolCalls.at(-1);
      if (last?.index === index) last.arguments += part.text;
      else toolCalls.push({ index, ...calls[index]!, arguments: part.text });
    }
  }
  return {
    text,
    ...(reasoning === '' ? {} : { reasoning }),
    ...(toolCalls.length === 0 ? {} : { toolCalls }),
  };
}

/** An id in the form that the model's template expects: Mistral's templates take nine letters and digits. */
function newId(form: ChatPlan['callIds']): string {
  if (form === 'mistral') return randomBytes(9).toString('hex').slice(0, 9);
  return `call_${randomUUID().replaceAll('-', '').slice(0, 24)}`;
}

/** Puts parts of calls together. */
export class CollectedCalls {
  readonly #calls: ToolCall[] = [];

  add(parts: readonly ToolCallPart[]): void {
    for (const { index, ...part } of parts) {
      const call = this.#calls[index];
      if (call === undefined) this.#calls[index] = part;
      else call.arguments += part.arguments;
    }
  }

  get list(): readonly ToolCall[] {
    return this.#calls;
  }
}
