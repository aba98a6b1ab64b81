import type {
  AIMessage,
  BaseMessage,
  ChatMessage as RoleMessage,
  ToolMessage,
} from '@langchain/core/messages';
import type { ChatMessage, ChatTextPart } from '../../models/chat-message.js';
import { InvalidRequestError } from '../errors/request-errors.js';
import { answerMessage, resultMessage } from '../library/collected-answer.js';
import { contentOf, filePart } from '../library/foreign-content.js';

/** LangChain's messages as those of Skein. @throws InvalidRequestError for content that no model here reads */
export function messagesOf(messages: readonly BaseMessage[]): ChatMessage[] {
  return messages.map(messageOf);
}

function messageOf(message: BaseMessage): ChatMessage {
  const type = message.getType();
  switch (type) {
    case 'system':
    case 'developer':
      return { role: 'system', content: message.text };
    case 'human':
      return { role: 'user', content: userContent(message) };
    case 'ai':
      return answerOf(message as AIMessage);
    case 'tool':
      return resultMessage((message as ToolMessage).tool_call_id, message.text);
    case 'generic':
      return { role: (message as RoleMessage).role, content: message.text };
    default:
      throw new InvalidRequestError(`A message of the type ${type} is not taken by a chat.`, 'messages');
  }
}

function answerOf({ text, tool_calls: calls = [], additional_kwargs: more }: AIMessage): ChatMessage {
  const reasoning = typeof more.reasoning_content === 'string' ? more.reasoning_content : '';
  const made = calls.map(({ id = '', name, args }) => ({ id, name, arguments: JSON.stringify(args) }));
  return answerMessage(text, reasoning, made);
}

function userContent({ content }: BaseMessage): string | readonly ChatTextPart[] {
  return typeof content === 'string' ? content : contentOf(content.map((block) => partOf(block as Block)));
}

/** A block of content: LangChain's own, of version 1 (`mimeType`) or before (`mime_type`), or OpenAI's. */
interface Block {
  type: string;
  text?: string;
  image_url?: string | { url: string };
  url?: string;
  data?: string | Uint8Array;
  mimeType?: string;
  mime_type?: string;
}

function partOf({ type, text, image_url: image, url, data, mimeType, mime_type }: Block): ChatTextPart {
  if (text !== undefined && (type === 'text' || type === 'text-plain')) return { type: 'text', text };
  if (type === 'image_url' && image !== undefined) return { type, image_url: image };
  const mediaType = mimeType ?? mime_type ?? (type === 'image' ? 'image/*' : '');
  if (url !== undefined && URL.canParse(url)) return filePart({ mediaType, data: new URL(url) });
  if (data !== undefined) return filePart({ mediaType, data });
  throw new InvalidRequestError(
    `A part of the type ${type} is not read; pictures and texts are.`,
    'messages',
  );
}
