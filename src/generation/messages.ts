import { field, says } from '../../base/named-text.js';
import type { ChatTextPart } from '../../models/chat-message.js';
import type { ChatMessage } from '../../models/chat-template.js';
import { hasPictures } from '../../models/template-messages.js';
import { InvalidRequestError } from '../errors/request-errors.js';
import type { ChatRequestMessage } from '../schemas/messages.js';
import { pictureAt, sourceOfUrl } from './pictures/picture-part.js';

const NEWER_ROLES: Readonly<Record<string, string>> = { developer: 'system', function: 'tool' };

/** Id for calls of the older form, which have none. Its length is the only one that Mistral's templates take. */
const FUNCTION_CALL_ID = 'function0';

/**
 * A message in the form that templates know: with their name of the system role, and without fields that were not
 * given. @param index its place in the request @throws InvalidRequestError for a picture that is in no data: URL, and at no address
 */
export function templateMessage(message: ChatRequestMessage, index = 0): ChatMessage {
  const { role, content, name } = message;
  const result: ChatMessage = { role: NEWER_ROLES[role] ?? role, content: templateContent(content, index) };
  if (name !== undefined) result.name = name;
  if (message.role === 'assistant') {
    const reasoning = message.reasoning_content ?? message.reasoning;
    if (reasoning !== undefined) result.reasoning_content = reasoning;
    if (message.tool_calls !== undefined) result.tool_calls = message.tool_calls;
    if (message.function_call !== undefined) {
      const call = { id: FUNCTION_CALL_ID, type: 'function', function: message.function_call };
      result.tool_calls = [...(message.tool_calls ?? []), call];
    }
  }
  if ('tool_call_id' in message && message.tool_call_id !== undefined) {
    result.tool_call_id = message.tool_call_id;
  }
  if (role === 'function') result.tool_call_id ??= FUNCTION_CALL_ID;
  return result;
}

type Content = NonNullable<ChatMessage['content']> | null;

function templateContent(content: ChatRequestMessage['content'], index: number): Content {
  if (typeof content !== 'object' || content === null) return content ?? null;
  return content.map((part, at) => {
    if (part.type === 'text') return part;
    const { field: name, picture } = part;
    const place = `messages[${index}].content[${at}].${name}`;
    return pictureAt('url' in picture ? sourceOfUrl(picture.url, place) : picture, place);
  });
}

/** A message without the files of its pictures. */
export function withoutFiles(message: ChatRequestMessage): object {
  const { content } = message;
  if (typeof content !== 'object' || content === null) return message;
  return { ...message, content: content.map((part) => (part.type === 'text' ? part : { type: part.type })) };
}

const CONTINUE = field('continue_final_message');

/** Checks the last message. @throws InvalidRequestError where it is to be continued and cannot be. */
export function checkFinalMessage(
  request: { continue_final_message?: boolean | undefined; add_generation_prompt?: boolean | undefined },
  messages: readonly ChatRequestMessage[],
): void {
  if (!request.continue_final_message) return;
  if (request.add_generation_prompt) {
    throw new InvalidRequestError(
      says`'${CONTINUE}' and '${field('add_generation_prompt')}' exclude each other.`,
      CONTINUE.name,
    );
  }
  if (messages.at(-1)?.role !== 'assistant') {
    throw new InvalidRequestError(says`'${CONTINUE}' needs a last message of the assistant.`, CONTINUE.name);
  }
}

/** The text of a message, of which each part has lines of its own; '': it has none. */
export function messageText({ content }: ChatMessage): string {
  if (typeof content === 'string') return content;
  return (content ?? []).map((part) => part.text ?? '').join('\n');
}

/** A message's content between two texts: a text, or parts where it has pictures. */
export function contentBetween(before: string, message: ChatMessage, after: string): string | ChatTextPart[] {
  const { content } = message;
  if (typeof content !== 'object' || content === null || !hasPictures(message))
    return `${before}${messageText(message)}${after}`;
  return [{ type: 'text', text: before }, ...content, { type: 'text', text: after }];
}
