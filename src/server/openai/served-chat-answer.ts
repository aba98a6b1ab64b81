import type { ChatMessage } from '../../../models/chat-template.js';
import type { ChatPlan } from '../../generation/chat-plan.js';
import type { TextPiece } from '../../generation/text-generation.js';
import type { AnswerPart } from '../../generation/tools/types.js';
import type { ServedGenerator } from '../../serving/served-model.js';
import { ChatMessageReader, type MessageCall } from '../answering/chat-message.js';
import { NO_PIECE } from '../answering/several-passes.js';
import type { ServedCall } from '../answering/tool-rounds.js';
import { finishReason, stopReason } from '../answering/usage.js';
import type { CallOutcome } from '../mcp/tool-server.js';

/** A call that runs here, as the message shows it. */
export interface ChatServedCall extends ServedCall {
  id: string;
  output: string | null;
  error: string | null;
}

/** Separator between the texts of two passes. */
const GAP = '\n\n';

interface ServedChatOptions {
  model: ServedGenerator;
  /** The tool of a server that the model calls by a name; null: it is the client's, or there is none. */
  find: (name: string) => Pick<ServedCall, 'server_label' | 'name'> | null;
  /** False: reasoning is left out. */
  givesReasoning: boolean;
  /** Called with the JSON of each change of the message. */
  onDelta: (delta: string) => void;
}

/** The message of a chat whose calls run here, over all its passes. */
export class ServedChatAnswer {
  readonly #options: ServedChatOptions;
  #reader: ChatMessageReader | null = null;
  #reasoningBefore = 0;
  #content = '';
  #reasoning = '';
  readonly #served: ChatServedCall[] = [];
  readonly #own: MessageCall[] = [];
  #waiting: ChatServedCall[] = [];
  /** True while the arguments are those of a call that the client makes. */
  #isOwn = false;
  #end: { finish: 'stop' | 'length' | 'tool_calls'; stop: string | number | null } | null = null;
  /** What the model has said in the pass that is under way. */
  #pass: { content: string; reasoning: string; calls: ChatServedCall[]; names: string[] } = nothingSaid();

  constructor(options: ServedChatOptions) {
    this.#options = options;
  }

  get isOver(): boolean {
    return this.#end !== null;
  }

  get finish() {
    return this.#end ?? { finish: 'stop' as const, stop: null };
  }

  get reasoningTokens(): number {
    return this.#reasoningBefore + (this.#reader?.reasoningTokens ?? 0);
  }

  beginPass(plan: ChatPlan): void {
    this.#reasoningBefore = this.reasoningTokens;
    const { model, givesReasoning } = this.#options;
    this.#reader = new ChatMessageReader(plan, model.codec, { givesReasoning });
    this.#pass = nothingSaid();
  }

  piece(piece: TextPiece): void {
    if (piece === NO_PIECE) return;
    const { text, tokens, finishReason: reason } = piece;
    for (const part of this.#reader!.read(text, tokens, reason !== null)) this.#take(part);
    if (reason === null) return;
    // A call that was cut off is not made.
    if (reason === 'stop') this.#waiting = [...this.#pass.calls];
    if (reason === 'stop' && this.#waiting.length > 0) return;
    this.endWith(finishReason(reason), stopReason(piece));
  }

  #take(part: AnswerPart): void {
    switch (part.type) {
      case 'content': {
        const isNext = this.#pass.content === '' && this.#content !== '';
        const told = isNext ? GAP + part.text : part.text;
        this.#pass.content += part.text;
        this.#content += told;
        this.#options.onDelta(JSON.stringify({ content: told }));
        break;
      }
      case 'reasoning':
        this.#pass.reasoning += part.text;
        this.#reasoning += part.text;
        this.#options.onDelta(this.#reader!.delta(part));
        break;
      case 'call':
        this.#call(part.name);
        break;
      case 'arguments':
        this.#arguments(part.text);
        break;
    }
  }

  #call(called: string): void {
    const made = this.#reader!.newCall(called);
    const tool = this.#options.find(called);
    this.#isOwn = tool === null;
    if (tool !== null) {
      this.#pass.calls.push({ id: made.id, ...tool, arguments: '', output: null, error: null });
      this.#pass.names.push(called);
      return;
    }
    this.#own.push(made);
    this.#options.onDelta(JSON.stringify({ tool_calls: [{ index: this.#own.length - 1, ...made }] }));
  }

  #arguments(text: string): void {
    if (!this.#isOwn) {
      this.#pass.calls.at(-1)!.arguments += text;
      return;
    }
    const index = this.#own.length - 1;
    this.#own[index]!.function.arguments += text;
    this.#options.onDelta(JSON.stringify({ tool_calls: [{ index, function: { arguments: text } }] }));
  }

  takeCalls(): ChatServedCall[] {
    const taken = this.#waiting;
    this.#waiting = [];
    return taken;
  }

  outcome(call: ChatServedCall, { text, isError }: CallOutcome): void {
    if (isError) call.error = text;
    else call.output = text;
    this.#served.push(call);
    this.#options.onDelta(JSON.stringify({ mcp_calls: [{ index: this.#served.length - 1, ...call }] }));
  }

  /** What the model said in the last pass, with the results of its calls, for the prompt of the next. */
  said(): ChatMessage[] {
    const { content, reasoning, calls, names } = this.#pass;
    const tool_calls = calls.map((call, i) => {
      return { id: call.id, type: 'function', function: { name: names[i]!, arguments: call.arguments } };
    });
    return [
      {
        role: 'assistant',
        content: content === '' ? null : content,
        ...(reasoning === '' ? {} : { reasoning_content: reasoning }),
        tool_calls,
      },
      ...calls.map(({ id, output, error }): ChatMessage => {
        return { role: 'tool', content: error ?? output ?? '', tool_call_id: id };
      }),
    ];
  }

  /** True where the last pass has calls that the client makes. */
  get waitsForClient(): boolean {
    return this.#own.length > 0;
  }

  endWith(finish: 'stop' | 'length', stop: string | number | null): void {
    const isCall = finish === 'stop' && this.#own.length > 0;
    this.#end = { finish: isCall ? 'tool_calls' : finish, stop };
  }

  /** The whole message. */
  message() {
    const own = this.#own;
    return {
      role: 'assistant',
      content: this.#content === '' && own.length > 0 ? null : this.#content,
      refusal: null,
      ...(this.#reasoning === '' ? {} : { reasoning: this.#reasoning, reasoning_content: this.#reasoning }),
      ...(own.length === 0 ? {} : { tool_calls: own }),
      mcp_calls: this.#served,
    };
  }
}

function nothingSaid() {
  return { content: '', reasoning: '', calls: [] as ChatServedCall[], names: [] as string[] };
}
