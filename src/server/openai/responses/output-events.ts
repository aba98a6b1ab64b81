import { objectOf } from '../../../generation/tools/call-reader.js';
import type { AnswerPart } from '../../../generation/tools/types.js';
import type { MessageCall } from '../../answering/chat-message.js';
import { itemJson, itemsJson, partJson } from './response-json.js';
import type { McpApprovalItem, McpCallItem, newId, OutputItem, OutputText } from './response-object.js';
import { REASONING_SEAL } from './sealed.js';
import { ServedEvents } from './served-events.js';
import { StreamedInput } from './streamed-input.js';
import type { ToolSet } from './tool-set.js';

type LogProbs = NonNullable<OutputText['logprobs']>;
type Item<Type extends OutputItem['type']> = Extract<OutputItem, { type: Type }>;
type ServedItem = McpCallItem | McpApprovalItem;

/**
 * Receives an event's type and fields, which the receiver numbers and frames. Fields in parts (JsonObject, JsonList) do
 * not change any more and may be written later.
 */
export type OnEvent = (type: string, fields: object) => void;

export interface OutputOptions {
  onEvent: OnEvent;
  newCall: (name: string) => Pick<MessageCall, 'id'>;
  newId: typeof newId;
  /** True where messages have log-probs. */
  hasLogProbs: boolean;
  tools: ToolSet;
  /** True where items of reasoning have `encrypted_content`. */
  sealsReasoning: boolean;
}

/** Calls that the client makes, or has to approve. */
const OF_CLIENT: ReadonlySet<OutputItem['type']> = new Set([
  'function_call',
  'custom_tool_call',
  'tool_search_call',
  'mcp_approval_request',
]);

/** Makes the items of a response out of the answer's parts, with their events in OpenAI's order. */
export class OutputEvents {
  readonly items: OutputItem[] = [];
  /** Items of tools of servers. */
  readonly served: ServedEvents;
  readonly #options: OutputOptions;
  /** The last item, while it is being written. */
  #open: OutputItem | null = null;
  /** Input of the open call of a custom tool. */
  #input = new StreamedInput();
  /** Arguments of the open search for tools. */
  #search = '';
  /** Number of items before the pass of the engine that is under way. */
  #passStart = 0;
  /** Log-probs of tokens whose text has not come yet. */
  #waitingLogProbs: LogProbs = [];

  constructor(options: OutputOptions) {
    this.#options = options;
    const begin = (item: OutputItem) => this.#begin(item);
    const place = (item: OutputItem) => this.#placeOf(item);
    this.served = new ServedEvents({ begin, place, tell: options.onEvent, newId: options.newId });
  }

  /** Takes parts of the answer. @param logProbs log-probs of the tokens that came with them. */
  push(parts: readonly AnswerPart[], logProbs: LogProbs): void {
    const isText =
      parts.some(({ type }) => type === 'content') || (this.#open ?? { type: 'message' }).type === 'message';
    if (isText) this.#waitingLogProbs.push(...logProbs);
    for (const part of parts) {
      switch (part.type) {
        case 'content':
          this.#text(part.text);
          break;
        case 'reasoning':
          this.#reasoning(part.text);
          break;
        case 'call':
          this.#call(part.name);
          break;
        case 'arguments':
          this.#arguments(part.text);
          break;
      }
    }
  }

  /** Begins the item of a compaction. */
  beginCompaction(): void {
    this.#begin({ type: 'compaction', id: this.#options.newId('cmp'), encrypted_content: '' });
  }

  endCompaction(encrypted_content: string): void {
    (this.#open as Item<'compaction'>).encrypted_content = encrypted_content;
    this.#close('completed');
  }

  /** Drops the item of a compaction that came to nothing. */
  dropCompaction(): void {
    if (this.#open?.type !== 'compaction') return;
    this.items.pop();
    this.#open = null;
  }

  /** Ends the answer; an empty one becomes an empty message. */
  end(status: 'completed' | 'incomplete'): void {
    if (this.items.length === this.#passStart) this.#openMessage();
    this.#close(status);
    this.served.breakOff();
  }

  /** Ends what is being written, whatever comes next. */
  closeItem(): void {
    this.#close('completed');
  }

  /** True where the last pass has calls that the client makes, or has to approve. */
  get waitsForClient(): boolean {
    return this.items.slice(this.#passStart).some(({ type }) => OF_CLIENT.has(type));
  }

  beginPass(): void {
    this.#close('completed');
    this.#passStart = this.items.length;
  }

  /** Ends the open item as incomplete, since nothing more comes. */
  breakOff(): void {
    this.dropCompaction();
    this.#close('incomplete');
    this.served.breakOff();
  }

  #text(text: string): void {
    const item = this.#open?.type === 'message' ? this.#open : this.#openMessage();
    const part = item.content[0]!;
    const logProbs = this.#waitingLogProbs.splice(0);
    part.text += text;
    part.logprobs?.push(...logProbs);
    this.#tell('response.output_text.delta', { ...this.#partPlace(), delta: text, logprobs: logProbs });
  }

  #reasoning(text: string): void {
    let item = this.#open;
    if (item?.type !== 'reasoning') {
      item = {
        type: 'reasoning',
        id: this.#options.newId('rs'),
        status: 'in_progress',
        summary: [],
        content: [],
      };
      this.#begin(item);
      item.content.push({ type: 'reasoning_text', text: '' });
      this.#tell('response.content_part.added', { ...this.#partPlace(), part: item.content[0] });
    }
    item.content[0]!.text += text;
    this.#tell('response.reasoning_text.delta', { ...this.#partPlace(), delta: text });
  }

  #call(called: string): void {
    const tool = this.#options.tools.find(called);
    if (tool?.kind === 'mcp') {
      this.served.call(tool.server!, tool.name, tool.needsApproval!);
      return;
    }
    const { id: call_id } = this.#options.newCall(called);
    const { name, namespace } = tool ?? { name: called };
    const named = namespace === undefined ? { call_id, name } : { call_id, name, namespace };
    const status = 'in_progress' as const;
    switch (tool?.kind) {
      case 'custom':
        this.#input = new StreamedInput();
        this.#begin({
          type: 'custom_tool_call',
          id: this.#options.newId('ctc'),
          status,
          ...named,
          input: '',
        });
        break;
      case 'search': {
        this.#search = '';
        const execution = 'client' as const;
        this.#begin({
          type: 'tool_search_call',
          id: this.#options.newId('tsc'),
          status,
          call_id,
          execution,
          arguments: {},
        });
        break;
      }
      default:
        this.#begin({
          type: 'function_call',
          id: this.#options.newId('fc'),
          status,
          ...named,
          arguments: '',
        });
    }
  }

  #arguments(text: string): void {
    const item = this.#open as Item<'function_call' | 'custom_tool_call' | 'tool_search_call'> | ServedItem;
    switch (item.type) {
      case 'custom_tool_call':
        this.#addInput(item, this.#input.push(text));
        break;
      case 'tool_search_call':
        this.#search += text;
        break;
      case 'mcp_call':
      case 'mcp_approval_request':
        this.served.addArguments(item, text);
        break;
      case 'function_call':
        item.arguments += text;
        this.#tell('response.function_call_arguments.delta', { ...this.#place(), delta: text });
        break;
    }
  }

  #addInput(item: Item<'custom_tool_call'>, delta: string): void {
    if (delta === '') return;
    item.input += delta;
    this.#tell('response.custom_tool_call_input.delta', { ...this.#place(), delta });
  }

  #openMessage(): Item<'message'> {
    const item: Item<'message'> = {
      type: 'message',
      id: this.#options.newId('msg'),
      status: 'in_progress',
      role: 'assistant',
      content: [],
    };
    this.#begin(item);
    const part: OutputText = { type: 'output_text', text: '', annotations: [] };
    if (this.#options.hasLogProbs) part.logprobs = [];
    item.content.push(part);
    this.#tell('response.content_part.added', { ...this.#partPlace(), part });
    return item;
  }

  /** Begins an item. The item of a call that waits for approval is sent once it is whole. */
  #begin(item: OutputItem): void {
    this.#close('completed');
    this.items.push(item);
    this.#open = item;
    if (item.type === 'mcp_approval_request') return;
    this.#tell('response.output_item.added', { output_index: this.items.length - 1, item });
  }

  #close(status: 'completed' | 'incomplete'): void {
    const item = this.#open;
    if (item === null) return;
    switch (item.type) {
      case 'mcp_list_tools':
      case 'mcp_call':
      case 'mcp_approval_request':
        this.#open = null;
        if (!this.served.close(item, status)) this.items.pop();
        return;
      case 'message': {
        const part = item.content[0]!;
        part.logprobs?.push(...this.#waitingLogProbs);
        const { text, logprobs = [] } = part;
        this.#tell('response.output_text.done', {
          ...this.#partPlace(),
          text,
          logprobs: itemsJson(logprobs),
        });
        this.#tell('response.content_part.done', { ...this.#partPlace(), part: partJson(part) });
        break;
      }
      case 'reasoning': {
        const part = item.content[0]!;
        if (this.#options.sealsReasoning) item.encrypted_content = REASONING_SEAL.seal(part.text);
        this.#tell('response.reasoning_text.done', { ...this.#partPlace(), text: part.text });
        this.#tell('response.content_part.done', { ...this.#partPlace(), part });
        break;
      }
      case 'custom_tool_call': {
        this.#addInput(item, this.#input.end(status === 'incomplete'));
        this.#tell('response.custom_tool_call_input.done', { ...this.#place(), input: item.input });
        break;
      }
      case 'tool_search_call':
        item.arguments = searchArguments(this.#search);
        break;
      case 'function_call': {
        const { name, arguments: args } = item;
        this.#tell('response.function_call_arguments.done', { ...this.#place(), name, arguments: args });
        break;
      }
    }
    this.#waitingLogProbs = [];
    if (item.type !== 'compaction') item.status = status;
    this.#tell('response.output_item.done', {
      output_index: this.items.length - 1,
      item: itemJson(item),
    });
    this.#open = null;
  }

  #place() {
    return this.#placeOf(this.items.at(-1)!);
  }

  #placeOf(item: OutputItem) {
    return { item_id: item.id, output_index: this.items.lastIndexOf(item) };
  }

  #partPlace() {
    return { ...this.#place(), content_index: 0 };
  }

  #tell(type: string, fields: object): void {
    this.#options.onEvent(type, fields);
  }
}

/** What a model searches for: the arguments of its call, or its text where they are none. */
const searchArguments = (text: string): object => objectOf(text) ?? { query: text };
