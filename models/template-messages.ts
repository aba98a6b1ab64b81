import { parseWritten } from '../base/written-json.js';
import { type ChatMessage, ChatTemplateError } from './chat-message.js';

/**
 * A message whose content is one string: '' for null (with tool calls), the joined lines of text parts, since templates of text
 * models concatenate content.
 */
export function withTextContent(message: ChatMessage, index: number): ChatMessage {
  return { ...message, content: contentText(message, index) };
}

function contentText(message: ChatMessage, index: number): string {
  const content = message.content ?? '';
  if (typeof content === 'string') return content;
  const texts = content.map((part) => {
    if (typeof part.text === 'string') return part.text;
    throw new ChatTemplateError(
      `messages[${index}].content: a part of type ${JSON.stringify(part.type)} is not text; this model reads text only.`,
    );
  });
  return texts.join('\n');
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
