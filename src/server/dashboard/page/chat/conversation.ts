import type { AnswerView } from './answer-view.js';
import type { Attachment } from './attachments/attachment.js';
import { contentOf } from './attachments/message-content.js';
import type { Parameters } from './parameters.js';
import type { ChatMessage, ChatRequest } from './stream-chat.js';

/** A question and its answer; the answer is empty where it failed. */
export interface Turn {
  question: string;
  attachments: readonly Attachment[];
  answer: Pick<AnswerView, 'text' | 'reasoning'>;
  element: HTMLElement;
}

/** A model as a conversation needs to know it. */
export interface AskedModel {
  id: string;
  /** True where it takes pictures: else those of the conversation are left out. */
  sees: boolean;
}

/**
 * Request for the answer of the last turn. Earlier turns without an answer are left out: many models' templates want
 * question and answer in turns.
 */
export function chatRequest(
  { id: model, sees }: AskedModel,
  turns: readonly Turn[],
  parameters: Parameters,
): ChatRequest {
  const { system, stop, numbers } = parameters;
  const messages: ChatMessage[] = system === '' ? [] : [{ role: 'system', content: system }];
  for (const [index, { question, attachments, answer }] of turns.entries()) {
    const isLast = index === turns.length - 1;
    if (!isLast && answer.text === '') continue;
    messages.push({ role: 'user', content: contentOf(question, attachments, sees) });
    if (!isLast) messages.push({ role: 'assistant', content: answer.text });
  }
  return { model, messages, ...numbers, ...(stop.length === 0 ? {} : { stop }) };
}
