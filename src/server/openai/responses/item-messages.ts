import { writtenJson } from '../../../../base/written-json.js';
import type { ChatMessage } from '../../../../models/chat-template.js';
import { isHosted, type MessageItem } from '../schemas/response-items.js';
import { type KeptMessage, openedState } from './compaction-state.js';
import { argumentsOf } from './custom-tools.js';
import type { OutputItem } from './response-object.js';
import type { KeptItem } from './response-store.js';
import { REASONING_SEAL } from './sealed.js';
import { summaryMessage } from './summary-texts.js';
import { keptTools, modelName, SEARCH_NAME } from './tool-set.js';

/**
 * Messages of items, for a chat template. The model's text, its reasoning and the calls behind it become one message;
 * each output of a call becomes one message of the tool.
 */
export function messagesOf(items: readonly KeptItem[]): ChatMessage[] {
  const messages: ChatMessage[] = [];
  let reasoning = '';
  /** Calls of the last message that has some: there may be thousands. */
  let calls: ReturnType<typeof callOf>[] = [];
  const assistant = (fields: Partial<ChatMessage>): void => {
    messages.push({
      role: 'assistant',
      content: null,
      ...fields,
      ...(reasoning === '' ? {} : { reasoning_content: reasoning }),
    });
    reasoning = '';
  };
  for (const item of items) {
    if (isHosted(item)) continue;
    switch (item.type) {
      case 'reasoning':
        reasoning += reasoningOf(item);
        break;
      case 'custom_tool_call':
      case 'function_call':
      case 'tool_search_call': {
        const call = callOf(item);
        const last = messages.at(-1);
        if (reasoning !== '' || last?.role !== 'assistant') {
          calls = [call];
          assistant({ tool_calls: calls });
        } else if (last.tool_calls === undefined) {
          calls = [call];
          last.tool_calls = calls;
        } else calls.push(call);
        break;
      }
      case 'function_call_output':
      case 'custom_tool_call_output':
        messages.push({ role: 'tool', content: textOf(item.output), tool_call_id: item.call_id });
        break;
      case 'tool_search_output':
        messages.push({ role: 'tool', content: foundTools(item.tools), tool_call_id: item.call_id ?? '' });
        break;
      case 'compaction':
        messages.push(...compactedMessages(item.encrypted_content));
        break;
      case 'item_reference':
      case 'additional_tools':
      case 'compaction_trigger':
        break;
      default: {
        const { role, content } = item;
        if (role === 'assistant') assistant({ content: textOf(content) });
        else messages.push({ role: role === 'developer' ? 'system' : role, content: partsOf(content) });
      }
    }
  }
  return messages;
}

type Call = Extract<KeptItem, { type: 'custom_tool_call' | 'function_call' | 'tool_search_call' }>;

function callOf(item: Call) {
  const isSearch = item.type === 'tool_search_call';
  const name = isSearch ? SEARCH_NAME : modelName(item.name, item.namespace);
  const id = item.call_id ?? '';
  return { id, type: 'function', function: { name, arguments: argumentsOfCall(item) } };
}

function argumentsOfCall(item: Call): string {
  switch (item.type) {
    case 'function_call':
      return item.arguments;
    case 'custom_tool_call':
      return argumentsOf(item.input);
    case 'tool_search_call':
      return writtenJson(item.arguments ?? {});
  }
}

/** What a search has found, by the names that the model calls the tools by. */
function foundTools(tools: Extract<KeptItem, { type: 'tool_search_output' }>['tools']): string {
  const names = keptTools(tools).flatMap((tool) => {
    if (tool.type === 'tool_search') return [SEARCH_NAME];
    if (tool.type !== 'namespace') return [tool.name];
    return tool.tools.map(({ name }) => modelName(name, tool.name));
  });
  return names.length === 0 ? 'No tools were found.' : `These tools can be called now: ${names.join(', ')}`;
}

/** The text of an item of reasoning, from its content or from what was sealed. */
function reasoningOf({ content, encrypted_content }: Extract<KeptItem, { type: 'reasoning' }>) {
  if (content !== undefined && content.length > 0) return content.map(({ text }) => text).join('');
  return encrypted_content === undefined ? '' : (REASONING_SEAL.open(encrypted_content) ?? '');
}

function compactedMessages(content: string): ChatMessage[] {
  const state = openedState(content);
  if (state === null) return [];
  const message = ({ role, text }: KeptMessage) => ({ role, content: text });
  return [
    ...(state.before ?? []).map(message),
    { role: 'user', content: summaryMessage(state.summary) },
    ...state.after.map(message),
  ];
}

type Content = MessageItem['content'] | Extract<OutputItem, { type: 'message' }>['content'];

export function textOf(content: Content): string {
  return typeof content === 'string' ? content : content.map(partText).join('\n');
}

/** A text, or several as parts: templates that read parts write them in their own way. */
function partsOf(content: Content): NonNullable<ChatMessage['content']> {
  if (typeof content === 'string' || content.length < 2) return textOf(content);
  return content.map((part) => ({ type: 'text', text: partText(part) }));
}

function partText(part: Exclude<Content, string>[number]): string {
  return part.type === 'refusal' ? part.refusal : part.text;
}
