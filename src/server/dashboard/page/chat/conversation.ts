import { contentOf } from './attachments/message-content.js';
import type { Parameters } from './parameters.js';
import type { StoredMessage } from './stored-conversation.js';
import type { ChatMessage, ChatRequest } from './stream-chat.js';

/** Most probable tokens that are asked for at each place. */
export const TOP_LOG_PROBS = 5;

/** A model as a conversation needs to know it. */
export interface AskedModel {
  id: string;
  /** True where it takes pictures: else those of the conversation are left out. */
  sees: boolean;
}

/**
 * Request for the answer of the last message, a question. Earlier questions without an answer are left out: many models' templates want
 * question and answer in turns.
 */
export function chatRequest(
  { id: model, sees }: AskedModel,
  path: readonly StoredMessage[],
  parameters: Parameters,
): ChatRequest {
  const { system, stop, numbers, wantsLogProbs } = parameters;
  const messages: ChatMessage[] = system === '' ? [] : [{ role: 'system', content: system }];
  for (const [index, { role, text, attachments = [] }] of path.entries()) {
    if (role === 'assistant') {
      if (text !== '') messages.push({ role, content: text });
      continue;
    }
    const next = path[index + 1];
    if (next === undefined || next.text !== '')
      messages.push({ role, content: contentOf(text, attachments, sees) });
  }
  return {
    ...{ model, messages, ...numbers },
    ...(stop.length === 0 ? {} : { stop }),
    ...(wantsLogProbs ? { logprobs: true, top_logprobs: TOP_LOG_PROBS } : {}),
  };
}
