import type {
  LanguageModelV3Message,
  LanguageModelV3Prompt,
  LanguageModelV3ToolResultPart,
} from '@ai-sdk/provider';
import type { ChatMessage, ChatTextPart } from '../../models/chat-message.js';
import { answerMessage, resultMessage } from '../library/collected-answer.js';
import { contentOf, filePart } from '../library/foreign-content.js';

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
      return [{ role: 'user', content: contentOf(userParts(message.content)) }];
    case 'assistant':
      return [assistantMessage(message.content)];
    case 'tool':
      return message.content.flatMap((part) =>
        part.type === 'tool-result' ? [resultMessage(part.toolCallId, outputText(part.output))] : [],
      );
  }
}

type ContentOf<Role> = Extract<LanguageModelV3Message, { role: Role }>['content'];

function userParts(parts: ContentOf<'user'>): ChatTextPart[] {
  return parts.map((part) => (part.type === 'text' ? { type: 'text', text: part.text } : filePart(part)));
}

function assistantMessage(parts: ContentOf<'assistant'>): ChatMessage {
  const textOf = (type: 'text' | 'reasoning') =>
    parts.map((part) => (part.type === type ? (part as { text: string }).text : '')).join('');
  const calls = parts.flatMap((part) => {
    if (part.type !== 'tool-call') return [];
    const { toolCallId: id, toolName: name, input } = part;
    return [{ id, name, arguments: JSON.stringify(input) }];
  });
  return answerMessage(textOf('text'), textOf('reasoning'), calls);
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
