import { randomBytes, randomUUID } from 'node:crypto';
import type { ChatPlan } from '../../generation/chat-plan.js';
import { ReasoningCounter } from '../../generation/reasoning/reasoning-counter.js';
import type { TextCodec } from '../../generation/text-model.js';
import type { AnswerParser, AnswerPart } from '../../generation/tools/types.js';

/** A call of a function, as an answer writes it. */
export interface MessageCall {
  id: string;
  type: 'function';
  function: { name: string; arguments: string };
}

/** Field of a message for its calls; the older `function_call` has room for one. */
export type CallField = 'tool_calls' | 'function_call';

export interface MessageOptions {
  /** Default tool_calls. */
  callField?: CallField;
  /** False: reasoning is counted and left out. Default true. */
  givesReasoning?: boolean;
  /** Makes the ids of calls, where the template has no form of its own for them. */
  newId?: () => string;
}

/** Turns one choice into a message: reads its parts, and counts its reasoning. */
export class ChatMessageReader {
  readonly #parser: AnswerParser | null;
  readonly #counter: ReasoningCounter | null;
  readonly #givesReasoning: boolean;
  readonly #newId: () => string;
  readonly #callField: CallField;
  #numCalls = 0;

  constructor(plan: ChatPlan, codec: TextCodec, options: MessageOptions = {}) {
    const { callField = 'tool_calls', givesReasoning = true, newId = openaiId } = options;
    this.#callField = callField;
    this.#givesReasoning = givesReasoning;
    this.#parser = plan.createParser?.() ?? null;
    this.#counter = ReasoningCounter.of(codec, plan);
    this.#newId = plan.callIds === 'mistral' ? mistralId : newId;
  }

  get hasCalls(): boolean {
    return this.#numCalls > 0;
  }

  get reasoningTokens(): number {
    return this.#counter?.count ?? 0;
  }

  /** Reads further text of the answer. */
  read(text: string, tokens: readonly number[], isEnd: boolean): AnswerPart[] {
    this.#counter?.push(tokens);
    if (this.#parser === null) return text === '' ? [] : [{ type: 'content', text }];
    const parts = this.#parser.push(text);
    const all = isEnd ? [...parts, ...this.#parser.end()] : parts;
    return this.#givesReasoning ? all : all.filter(({ type }) => type !== 'reasoning');
  }

  /** JSON of a part's `delta`. */
  delta(part: AnswerPart): string {
    switch (part.type) {
      case 'content':
        return `{"content":${JSON.stringify(part.text)}}`;
      case 'reasoning': {
        const text = JSON.stringify(part.text);
        return `{"reasoning":${text},"reasoning_content":${text}}`;
      }
      case 'call':
        if (this.#callField === 'function_call')
          return JSON.stringify({ function_call: this.newCall(part.name).function });
        return JSON.stringify({ tool_calls: [{ index: this.#numCalls, ...this.newCall(part.name) }] });
      case 'arguments': {
        const index = this.#numCalls - 1;
        if (this.#callField === 'function_call')
          return `{"function_call":{"arguments":${JSON.stringify(part.text)}}}`;
        return `{"tool_calls":[{"index":${index},"function":{"arguments":${JSON.stringify(part.text)}}}]}`;
      }
    }
  }

  /** The whole message. */
  message(parts: readonly AnswerPart[]) {
    let content = '';
    let reasoning = '';
    const calls: MessageCall[] = [];
    for (const part of parts) {
      if (part.type === 'call') calls.push(this.newCall(part.name));
      else if (part.type === 'arguments') calls.at(-1)!.function.arguments += part.text;
      else if (part.type === 'reasoning') reasoning += part.text;
      else content += part.text;
    }
    return {
      role: 'assistant',
      content: content === '' && calls.length > 0 ? null : content,
      refusal: null,
      ...(reasoning === '' ? {} : { reasoning, reasoning_content: reasoning }),
      ...this.#callsOf(calls),
    };
  }

  #callsOf(calls: readonly MessageCall[]) {
    const [first] = calls;
    if (first === undefined) return {};
    return this.#callField === 'tool_calls' ? { tool_calls: calls } : { function_call: first.function };
  }

  newCall(name: string): MessageCall {
    this.#numCalls++;
    return { id: this.#newId(), type: 'function', function: { name, arguments: '' } };
  }
}

function openaiId(): string {
  return `call_${randomUUID().replaceAll('-', '').slice(0, 24)}`;
}

/** An id of nine letters and digits, the only form that Mistral's templates take. */
function mistralId(): string {
  return randomBytes(9).toString('hex').slice(0, 9);
}
