import { ApiError } from '../../web/errors.js';
import { type InputItem, isHosted, type MessageItem } from '../schemas/response-items.js';
import type { ResponseRequest } from '../schemas/responses.js';
import { isImage, sourceOf } from './item-messages.js';
import type { OwnStore } from './own-store.js';
import { newId } from './response-object.js';
import type { KeptItem, StoredItem } from './response-store.js';
import { itemSize, noteSameSize } from './stored-size.js';

type MessagePart = Exclude<MessageItem['content'], string>[number];

/** Most items of type compaction in a list: each is read to its end. */
const MAX_COMPACTIONS = 64;

/** The items of an input, each with an id. @throws ApiError. */
export function storedInput(
  input: ResponseRequest['input'] | undefined,
  store: OwnStore,
): Promise<StoredItem[]> {
  return storedList(inputItems(input), 'input', store);
}

/** Items that are added to a conversation, each with an id. @throws ApiError. */
export async function storedItems(items: readonly InputItem[], store: OwnStore): Promise<StoredItem[]> {
  const trigger = items.findIndex(({ type }) => type === 'compaction_trigger');
  if (trigger >= 0) {
    const param = `items[${trigger}]`;
    const message = `'${param}' is a compaction_trigger, which is the end of a request's input and no item to keep.`;
    throw new ApiError(400, message, { param, code: 'invalid_value' });
  }
  return storedList(items, 'items', store);
}

/** References are resolved first: what they stand for is counted like what was sent, and only then read. */
async function storedList(
  items: readonly InputItem[],
  field: string,
  store: OwnStore,
): Promise<StoredItem[]> {
  const resolved: InputItem[] = [];
  for (const [index, item] of items.entries()) {
    const isReference = item.type === 'item_reference';
    resolved.push(isReference ? ((await store.item(item.id, `${field}[${index}].id`)) as StoredItem) : item);
  }
  const compactions = resolved.filter(({ type }) => type === 'compaction').length;
  if (compactions > MAX_COMPACTIONS) {
    const message = `'${field}' has ${compactions} items of type compaction, at most ${MAX_COMPACTIONS} are taken.`;
    throw new ApiError(400, message, { param: field, code: 'invalid_value' });
  }
  return resolved.map((item, index) =>
    item === items[index] ? storedItem(item, `${field}[${index}]`) : (item as StoredItem),
  );
}

function inputItems(input: ResponseRequest['input'] | undefined): InputItem[] {
  if (input === undefined) return [];
  if (typeof input !== 'string') return input;
  return [messageOf('user', [{ type: 'input_text', text: input }])];
}

function messageOf(role: MessageItem['role'], content: MessageItem['content']): InputItem {
  return { type: 'message', role, content, id: undefined };
}

/** An item with an id, and with a message's content in parts, as lists of items return it. */
function storedItem(item: InputItem, place: string): StoredItem {
  if (isHosted(item)) return { ...item, id: item.id ?? freshId(item) };
  switch (item.type) {
    case 'compaction': {
      const stored = { ...item, id: item.id ?? freshId(item) };
      if (itemSize(stored).compaction !== null) return stored;
      const param = `${place}.encrypted_content`;
      const message = `'${param}' was not made by this server, which cannot know what the conversation was about.`;
      throw new ApiError(400, message, { param, code: 'invalid_encrypted_content' });
    }
    case 'item_reference':
    case 'reasoning':
    case 'compaction_trigger':
    case 'additional_tools':
      return { ...item, id: item.id ?? freshId(item) };
    case 'function_call_output':
    case 'custom_tool_call_output':
      if (typeof item.output !== 'string') checkPictures(item.output, `${place}.output`, 'tool');
      return { ...item, id: item.id ?? freshId(item), status: 'completed' };
    case 'function_call':
    case 'custom_tool_call':
    case 'mcp_list_tools':
    case 'mcp_approval_request':
    case 'mcp_approval_response':
      return { ...item, id: item.id ?? freshId(item) };
    case 'mcp_call':
    case 'tool_search_call':
    case 'tool_search_output':
      return { ...item, id: item.id ?? freshId(item), status: 'completed' };
    default: {
      const { role, content, id = freshId(item) } = item;
      const type = role === 'assistant' ? 'output_text' : 'input_text';
      const parts = typeof content === 'string' ? [{ type, text: content } as const] : content;
      checkPictures(parts, `${place}.content`, role);
      return { type: 'message', id, role, status: 'completed', content: parts.map(wholePart) };
    }
  }
}

/**
 * @throws ApiError for pictures of others than users and tools; InvalidRequestError for an invalid URL of a
 * picture
 */
function checkPictures(
  parts: readonly MessagePart[],
  place: string,
  role: MessageItem['role'] | 'tool',
): void {
  for (const [i, part] of parts.entries()) {
    if (!isImage(part)) continue;
    const param = `${place}[${i}]`;
    sourceOf(part, param);
    if (role === 'user' || role === 'tool') continue;
    const message = `'${param}' is a picture in a message of the role '${role}', which has none here: users and tools have them.`;
    throw new ApiError(400, message, { param, code: 'unsupported_parameter' });
  }
}

/** A part with the fields that OpenAI's lists have. */
function wholePart(part: MessagePart): MessagePart {
  if (part.type === 'output_text') return { annotations: [], ...part };
  return isImage(part) ? { ...part, detail: part.detail ?? 'auto' } : part;
}

/** The same item under another id. */
export function withNewId(item: KeptItem): KeptItem {
  const copy = { ...item, id: freshId(item) };
  noteSameSize(item, copy);
  return copy;
}

const PREFIXES = {
  function_call: 'fc',
  function_call_output: 'fc',
  custom_tool_call: 'ctc',
  custom_tool_call_output: 'ctc',
  tool_search_call: 'tsc',
  tool_search_output: 'tso',
  additional_tools: 'at',
  reasoning: 'rs',
  compaction: 'cmp',
  compaction_trigger: 'ct',
  mcp_list_tools: 'mcpl',
  mcp_approval_request: 'mcpr',
  mcp_approval_response: 'mcpa',
  mcp_call: 'mcp',
} as const;

function freshId(item: { type?: string | undefined }): string {
  return newId(isHosted(item) ? 'item' : (PREFIXES[item.type as keyof typeof PREFIXES] ?? 'msg'));
}
