import type {
  ChatMessage as ForeignMessage,
  MessageContent,
  MessageContentDetail,
  ToolCallLLMMessageOptions,
} from '@llamaindex/core/llms';
import type { ChatMessage, ChatTextPart } from '../../models/chat-message.js';
import { InvalidRequestError } from '../errors/request-errors.js';
import { answerMessage, resultMessage } from '../library/collected-answer.js';
import { contentOf, filePart } from '../library/foreign-content.js';

/** LlamaIndex's messages as those of Skein. @throws InvalidRequestError for content that no model here reads */
export function messagesOf(messages: readonly ForeignMessage<ToolCallLLMMessageOptions>[]): ChatMessage[] {
  return messages.map(messageOf);
}

function messageOf({ role, content, options }: ForeignMessage<ToolCallLLMMessageOptions>): ChatMessage {
  if (options !== undefined && 'toolResult' in options)
    return resultMessage(options.toolResult.id, textOf(content));
  if (options !== undefined && 'toolCall' in options) {
    const calls = options.toolCall.map(({ id, name, input }) => {
      return { id, name, arguments: typeof input === 'string' ? input : JSON.stringify(input) };
    });
    return answerMessage(textOf(content), '', calls);
  }
  if (role === 'user' && typeof content !== 'string')
    return { role, content: contentOf(content.map(partOf)) };
  // What LlamaIndex calls memory is sent as a system message.
  const isOfSystem = role === 'memory' || role === 'developer';
  return { role: isOfSystem ? 'system' : role, content: textOf(content) };
}

function textOf(content: MessageContent): string {
  if (typeof content === 'string') return content;
  return content.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('\n\n');
}

function partOf(part: MessageContentDetail): ChatTextPart {
  if (part.type === 'text') return { type: 'text', text: part.text };
  if (part.type === 'image_url') return { type: 'image_url', image_url: { url: part.image_url.url } };
  if (part.type === 'image' || part.type === 'file')
    return filePart({ mediaType: part.mimeType, data: part.data });
  throw new InvalidRequestError(
    `A part of the type ${part.type} is not read; pictures and texts are.`,
    'messages',
  );
}
