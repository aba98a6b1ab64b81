import type {
  LanguageModelV3FilePart,
  LanguageModelV3Message,
  LanguageModelV3Prompt,
  LanguageModelV3ToolResultPart,
} from '@ai-sdk/provider';
import type { ChatMessage, ChatTextPart } from '../../models/chat-message.js';
import { InvalidRequestError } from '../errors/request-errors.js';

/** The SDK's prompt as messages of Skein. @throws InvalidRequestError for a file that no model here reads */
export function messagesOf(prompt: LanguageModelV3Prompt): ChatMessage[] {
  return prompt.flatMap(messagesOfOne);
}

/** Each result of a function is a message of its own. */
function messagesOfOne(message: LanguageModelV3Message): ChatMessage[] {
  switch (message.role) {
    case 'system':
      return [{ role: 'system', content: message.content }];
    case 'user':
      return [{ role: 'user', content: userContent(message.content) }];
    case 'assistant':
      return [assistantMessage(message.content)];
    case 'tool':
      return message.content.flatMap((part) => (part.type === 'tool-result' ? [resultMessage(part)] : []));
  }
}

type ContentOf<Role> = Extract<LanguageModelV3Message, { role: Role }>['content'];

function userContent(parts: ContentOf<'user'>): string | ChatTextPart[] {
  const [only] = parts;
  if (parts.length === 1 && only!.type === 'text') return only!.text;
  return parts.map((part) => (part.type === 'text' ? { type: 'text', text: part.text } : filePart(part)));
}

function filePart({ data, mediaType }: LanguageModelV3FilePart): ChatTextPart {
  if (mediaType.startsWith('image/')) {
    if (data instanceof URL) return { type: 'image_url', image_url: { url: data.href } };
    return { type: 'image', image: bytesOf(data) };
  }
  if (mediaType.startsWith('text/') && !(data instanceof URL))
    return { type: 'text', text: new TextDecoder().decode(bytesOf(data)) };
  throw new InvalidRequestError(
    `A file of the type ${mediaType} is not read; pictures and texts are.`,
    'prompt',
  );
}

/** A file is bytes, or base64. */
const bytesOf = (data: Uint8Array | string) =>
  typeof data === 'string' ? Buffer.from(data, 'base64') : data;

function assistantMessage(parts: ContentOf<'assistant'>): ChatMessage {
  const textOf = (type: 'text' | 'reasoning') =>
    parts.map((part) => (part.type === type ? (part as { text: string }).text : '')).join('');
  const calls = parts.flatMap((part) => {
    if (part.type !== 'tool-call') return [];
    const { toolCallId: id, toolName: name, input } = part;
    return [{ id, type: 'function', function: { name, arguments: JSON.stringify(input) } }];
  });
  const reasoning = textOf('reasoning');
  return {
    role: 'assistant',
    content: textOf('text'),
    ...(reasoning !== '' && { reasoning_content: reasoning }),
    ...(calls.length > 0 && { tool_calls: calls }),
  };
}

function resultMessage({ toolCallId, output }: LanguageModelV3ToolResultPart): ChatMessage {
  return { role: 'tool', tool_call_id: toolCallId, content: outputText(output) };
}

function outputText(output: LanguageModelV3ToolResultPart['output']): string {
  switch (output.type) {
    case 'text':
    case 'error-text':
      return output.value;
    case 'execution-denied':
      return output.reason ?? 'Tool call execution denied.';
    default:
      return JSON.stringify(output.value);
  }
}
