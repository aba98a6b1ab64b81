import type { ChatMessage } from '../../../../models/chat-template.js';
import { ApiError } from '../errors.js';
import type { InputItem, MessageItem } from '../schemas/response-items.js';
import type { ResponseRequest } from '../schemas/responses.js';
import { argumentsOf } from './custom-tools.js';
import { newId, type OutputItem } from './response-object.js';
import type { OwnResponses, StoredItem, StoredResponse } from './response-store.js';
import { unsealed } from './sealed-reasoning.js';

/** Conversation that a response answers. */
export interface Conversation {
  messages: ChatMessage[];
  /** Items of the request itself. */
  input: StoredItem[];
  previous: StoredResponse | null;
}

/** Fields of a request from which its conversation is made. */
type AskedConversation = Pick<ResponseRequest, 'input' | 'instructions' | 'previous_response_id'>;

/** The conversation that a request continues, followed by its own items. @throws ApiError. */
export function conversationOf(request: AskedConversation, store: OwnResponses): Conversation {
  const { previous_response_id: previousId, instructions } = request;
  const previous = previousId === undefined ? null : store.get(previousId, 'previous_response_id');
  const input = inputItems(request.input).map((item, index) => storedItem(item, index, store));
  const messages = messagesOf([...historyOf(previous), ...input]);
  if (instructions !== undefined) messages.unshift({ role: 'system', content: instructions });
  return { messages, input, previous };
}

/** All items of a response and of those that it continues, the oldest first. */
export function historyOf(last: StoredResponse | null): (StoredItem | OutputItem)[] {
  const turns: StoredResponse[] = [];
  for (let link = last; link !== null; link = link.previous) turns.unshift(link);
  return turns.flatMap(({ input, response }) => [...input, ...response.output]);
}

function inputItems(input: ResponseRequest['input']): InputItem[] {
  if (typeof input !== 'string') return input;
  return [messageOf('user', [{ type: 'input_text', text: input }])];
}

function messageOf(role: MessageItem['role'], content: MessageItem['content']): InputItem {
  return { type: 'message', role, content, id: undefined };
}

/** An item with an id, and with a message's content in parts, as lists of items return it. */
function storedItem(item: InputItem, index: number, store: OwnResponses): StoredItem {
  if (item.type === 'item_reference') {
    const found = store.findItem(item.id);
    if (found !== null) return found as StoredItem;
    throw new ApiError(
      404,
      `'input[${index}].id' is '${item.id}', but no stored response has such an item.`,
      {
        param: `input[${index}].id`,
        code: 'item_not_found',
      },
    );
  }
  switch (item.type) {
    case 'function_call':
    case 'function_call_output':
      return { ...item, id: item.id ?? newId('fc'), status: 'completed' };
    case 'custom_tool_call':
    case 'custom_tool_call_output':
      return { ...item, id: item.id ?? newId('ctc'), status: 'completed' };
    case 'reasoning':
      return { ...item, id: item.id ?? newId('rs') };
    default: {
      const { role, content, id = newId('msg') } = item;
      const type = role === 'assistant' ? 'output_text' : 'input_text';
      const parts = typeof content === 'string' ? [{ type, text: content } as const] : content;
      return { type: 'message', id, role, status: 'completed', content: parts };
    }
  }
}

/**
 * Messages of items, for a chat template. The model's text, its reasoning and the calls behind it become one message;
 * each output of a call becomes one message of the tool.
 */
function messagesOf(items: readonly (StoredItem | OutputItem)[]): ChatMessage[] {
  const messages: ChatMessage[] = [];
  let reasoning = '';
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
    switch (item.type) {
      case 'reasoning':
        reasoning += reasoningOf(item);
        break;
      case 'custom_tool_call':
      case 'function_call': {
        const args = item.type === 'function_call' ? item.arguments : argumentsOf(item.input);
        const call = {
          id: item.call_id,
          type: 'function',
          function: { name: item.name, arguments: args },
        };
        const last = messages.at(-1);
        if (reasoning === '' && last?.role === 'assistant')
          last.tool_calls = [...(last.tool_calls ?? []), call];
        else assistant({ tool_calls: [call] });
        break;
      }
      case 'function_call_output':
      case 'custom_tool_call_output':
        messages.push({ role: 'tool', content: textOf(item.output), tool_call_id: item.call_id });
        break;
      case 'item_reference':
        break;
      default: {
        const content = textOf(item.content);
        if (item.role === 'assistant') assistant({ content });
        else messages.push({ role: item.role === 'developer' ? 'system' : item.role, content });
      }
    }
  }
  return messages;
}

/** The text of an item of reasoning, from its content or from what was sealed. */
function reasoningOf({
  content,
  encrypted_content,
}: Extract<StoredItem | OutputItem, { type: 'reasoning' }>) {
  if (content !== undefined && content.length > 0) return content.map(({ text }) => text).join('');
  return encrypted_content === undefined ? '' : unsealed(encrypted_content);
}

type Content = MessageItem['content'] | Extract<OutputItem, { type: 'message' }>['content'];

function textOf(content: Content): string {
  if (typeof content === 'string') return content;
  return content.map((part) => (part.type === 'refusal' ? part.refusal : part.text)).join('\n');
}
