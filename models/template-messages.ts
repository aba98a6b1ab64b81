import { parseWritten } from '../base/written-json.js';
import { type ChatMessage, ChatTemplateError, type ChatTextPart } from './chat-message.js';

/**
 * A message whose content is one string: '' for null (with tool calls), the joined lines of text parts, since templates of text
 * models concatenate content.
 */
export function withTextContent(message: ChatMessage, index: number): ChatMessage {
  return { ...message, content: contentText(message, index) };
}

/** A message whose content is one string, or the list of its text parts. */
export function withContentParts(message: ChatMessage, index: number): ChatMessage {
  const { content } = message;
  if (typeof content !== 'object' || content === null) return withTextContent(message, index);
  const parts = content.map((part) =>
    isPicture(part) ? { type: PICTURE } : { type: 'text', text: textOf(part, index) },
  );
  return { ...message, content: parts };
}

/** Type of the part that stands for a picture. */
const PICTURE = 'image';
const isPicture = ({ type }: ChatTextPart): boolean => type === PICTURE;

/** True where a message has a picture among its parts. */
export const hasPictures = ({ content }: ChatMessage): boolean =>
  Array.isArray(content) && content.some(isPicture);

/** True where a message has a list of parts. */
export const hasParts = ({ content }: ChatMessage): boolean => Array.isArray(content);

function contentText(message: ChatMessage, index: number): string {
  const content = message.content ?? '';
  return typeof content === 'string' ? content : textsOf(content, index).join('\n');
}

function textsOf(content: readonly ChatTextPart[], index: number): string[] {
  return content.map((part) => textOf(part, index));
}

function textOf(part: ChatTextPart, index: number): string {
  if (typeof part.text === 'string') return part.text;
  throw new ChatTemplateError(
    `messages[${index}].content: a part of type ${JSON.stringify(part.type)} is not text; this model reads text only.`,
  );
}

/** A message whose calls have their arguments as objects, which most templates write with tojson. */
export function withParsedArguments(message: ChatMessage): ChatMessage {
  if (message.tool_calls === undefined) return message;
  return { ...message, tool_calls: message.tool_calls.map(parsedCall) };
}

/** True where a message has calls whose arguments are the text of an object. */
export function hasTextArguments(message: ChatMessage): boolean {
  return message.tool_calls?.some((call) => parsedCall(call) !== call) ?? false;
}

function parsedCall(call: unknown): unknown {
  const callee = (call as { function?: { arguments?: unknown } } | null)?.function;
  if (typeof callee?.arguments !== 'string') return call;
  try {
    const parsed = parseWritten(callee.arguments);
    if (typeof parsed !== 'object' || parsed === null) return call;
    return { ...(call as object), function: { ...callee, arguments: parsed } };
  } catch {
    return call;
  }
}
