import { writtenJson } from '../../../../base/written-json.js';
import type { ChatTextPart } from '../../../../models/chat-message.js';
import type { ChatMessage } from '../../../../models/chat-template.js';
import { type PictureSource, pictureAt, sourceOfUrl } from '../../../generation/pictures/picture-part.js';
import { summaryMessage } from '../../../generation/summary-texts.js';
import { isHosted, type MessageItem } from '../schemas/response-items.js';
import { type KeptMessage, openedState } from './compaction-state.js';
import { argumentsOf } from './custom-tools.js';
import type { OutputItem } from './response-object.js';
import type { KeptItem } from './response-store.js';
import { REASONING_SEAL } from './sealed.js';
import { ServedCalls } from './served-calls.js';
import { keptTools, modelName, SEARCH_NAME } from './tool-set.js';

/** Place of an item in a request. */
export interface ItemPlace {
  place: string;
  /** True for an item of an earlier turn, which the request did not bring. */
  isEarlier: boolean;
}

/**
 * Messages of items, for a chat template. The model's text, its reasoning and the calls after it become one
 * message; each output of a call becomes one message of the tool.
 * @param placeOf place of an item in the request @throws InvalidRequestError for a picture that is in no
 * data: URL, and at no address
 */
export function messagesOf(
  items: readonly KeptItem[],
  placeOf: (item: KeptItem) => ItemPlace,
): ChatMessage[] {
  const messages: ChatMessage[] = [];
  let reasoning = '';
  /** Calls of the last message that has some: there may be thousands. */
  let calls: CallOfMessage[] = [];
  const served = new ServedCalls();
  const assistant = (fields: Partial<ChatMessage>): void => {
    messages.push({
      role: 'assistant',
      content: null,
      ...fields,
      ...(reasoning === '' ? {} : { reasoning_content: reasoning }),
    });
    reasoning = '';
  };
  const addCall = (call: CallOfMessage): void => {
    const last = messages.at(-1);
    if (reasoning !== '' || last?.role !== 'assistant') {
      calls = [call];
      assistant({ tool_calls: calls });
    } else if (last.tool_calls === undefined) {
      calls = [call];
      last.tool_calls = calls;
    } else calls.push(call);
  };
  for (const item of items) {
    if (isHosted(item)) continue;
    switch (item.type) {
      case 'reasoning':
        reasoning += reasoningOf(item);
        break;
      case 'custom_tool_call':
      case 'function_call':
      case 'tool_search_call':
        addCall(callOf(item));
        break;
      case 'function_call_output':
      case 'custom_tool_call_output':
        messages.push({
          role: 'tool',
          content: hasPictures(item.output)
            ? partsOf(item.output, () => inside(placeOf(item), 'output'))
            : textOf(item.output),
          tool_call_id: item.call_id,
        });
        break;
      case 'tool_search_output':
        messages.push({ role: 'tool', content: foundTools(item.tools), tool_call_id: item.call_id ?? '' });
        break;
      case 'mcp_call':
      case 'mcp_approval_response':
      case 'mcp_approval_request':
      case 'mcp_list_tools': {
        const ran = served.read(item);
        if (ran === null) break;
        addCall(ran.call);
        messages.push({ role: 'tool', content: ran.result, tool_call_id: ran.call.id });
        break;
      }
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
        else {
          const told = partsOf(content, () => inside(placeOf(item), 'content'));
          messages.push({ role: role === 'developer' ? 'system' : role, content: told });
        }
      }
    }
  }
  return messages;
}

type CallOfMessage = ReturnType<typeof callOf>;
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

type Part = Exclude<Content, string>[number];
type ImagePart = Extract<Part, { type: 'input_image' }>;

export const isImage = (part: Part): part is ImagePart => part.type === 'input_image';
export const hasPictures = (content: Content): boolean =>
  typeof content === 'object' && content.some(isImage);

/** The texts of a content, without its pictures. */
export function textOf(content: Content): string {
  if (typeof content === 'string') return content;
  return content.flatMap((part) => (isImage(part) ? [] : partText(part))).join('\n');
}

/** A text, or several and pictures as parts: templates that read parts write them in their own way. */
function partsOf(content: Content, placeOf: () => ItemPlace): NonNullable<ChatMessage['content']> {
  if (typeof content === 'string' || (content.length < 2 && !hasPictures(content))) return textOf(content);
  return content.map((part, i): ChatTextPart => {
    if (!isImage(part)) return { type: 'text', text: partText(part) };
    const { place: all, isEarlier } = placeOf();
    const place = `${all}[${i}]`;
    return pictureAt(sourceOf(part, place), place, isEarlier);
  });
}

const inside = ({ place, isEarlier }: ItemPlace, field: string): ItemPlace => ({
  place: `${place}.${field}`,
  isEarlier,
});

/** Where the picture of a part is. @throws InvalidRequestError for an invalid URL */
export function sourceOf({ image_url: url, file_id: fileId }: ImagePart, place: string): PictureSource {
  return url === undefined ? { fileId: fileId! } : sourceOfUrl(url, place);
}

function partText(part: Exclude<Part, ImagePart>): string {
  return part.type === 'refusal' ? part.refusal : part.text;
}
