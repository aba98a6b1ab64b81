import { closestName } from '../../base/did-you-mean.js';
import { isObject, shown } from '../../base/option-values.js';
import type { ChatMessage } from '../../models/chat-template.js';

/** Roles of messages in a conversation. */
export const MESSAGE_ROLES = ['system', 'developer', 'user', 'assistant', 'tool', 'function'] as const;

/**
 * First fault of a conversation's messages, as one sentence; null if there is none. A template would render an unknown
 * role as if it were a known one, and the model would answer something else than was meant.
 */
export function messagesFault(messages: readonly unknown[]): string | null {
  if (messages.length === 0) return 'messages is empty; at least one message is needed.';
  for (const [index, message] of messages.entries()) {
    const fault = messageFault(`messages[${index}]`, message);
    if (fault !== null) return fault;
  }
  return null;
}

function messageFault(where: string, message: unknown): string | null {
  if (!isObject(message)) {
    return `${where} is ${shown(message)}; it must be a message, such as { role: 'user', content: 'Hello' }.`;
  }
  const { role, content } = message;
  if (!MESSAGE_ROLES.includes(role as never)) {
    const meant = typeof role === 'string' ? closestName(role, MESSAGE_ROLES) : null;
    const hint = meant === null ? '' : ` Did you mean ${meant}?`;
    return `${where}.role is ${shown(role)}; it must be one of ${MESSAGE_ROLES.join(', ')}.${hint}`;
  }
  // An assistant's message may consist of tool calls alone.
  if (role === 'assistant' && (content === undefined || content === null)) return null;
  if (typeof content === 'string' || (Array.isArray(content) && content.every(isTextPart))) return null;
  return `${where}.content is ${shown(content)}; it must be a text or a list of { type: 'text', text } parts.`;
}

function isTextPart(part: unknown): boolean {
  return isObject(part) && part.type === 'text' && typeof part.text === 'string';
}

/** A message in the words of templates, most of which know the developer role only as system. */
export function templateMessage(message: ChatMessage): ChatMessage {
  return message.role === 'developer' ? { ...message, role: 'system' } : message;
}

/** The text of a message, of which each part has lines of its own; '': it has none. */
export function messageText({ content }: ChatMessage): string {
  if (typeof content === 'string') return content;
  return (content ?? []).map((part) => part.text ?? '').join('\n');
}
