import type { AnswerView } from './answer-view.js';
import type { Parameters } from './parameters.js';
import type { ChatMessage, ChatRequest } from './stream-chat.js';

/** A question and its answer; the answer is empty where it failed. */
export interface Turn {
  question: string;
  answer: Pick<AnswerView, 'text' | 'reasoning'>;
  element: HTMLElement;
}

/**
 * Request for the answer of the last turn. Earlier turns without an answer are left out: many models' templates want
 * question and answer in turns.
 */
export function chatRequest(model: string, turns: readonly Turn[], parameters: Parameters): ChatRequest {
  const { system, stop, numbers } = parameters;
  const messages: ChatMessage[] = system === '' ? [] : [{ role: 'system', content: system }];
  for (const [index, { question, answer }] of turns.entries()) {
    const isLast = index === turns.length - 1;
    if (isLast || answer.text !== '') messages.push({ role: 'user', content: question });
    if (!isLast && answer.text !== '') messages.push({ role: 'assistant', content: answer.text });
  }
  return { model, messages, ...numbers, ...(stop.length === 0 ? {} : { stop }) };
}
