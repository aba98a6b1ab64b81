import type { ChatMessage } from '../../../models/chat-template.js';
import { messageText } from '../messages.js';
import { callsOf } from '../tools/tool-messages.js';

/**
 * A conversation in the form of which templates of Gemma 4 leave nothing out, and after which a turn of the model is open. They write a
 * message's content after its calls and their results, and many end the turn there and begin none:
 *
 *   assistant a + calls, results     ->  assistant a, assistant calls, results     where both are one turn, or turns of their own
 *                                    ->  assistant calls, results, assistant a     where the second would have no begin
 *
 * Older templates know results only as `tool_responses` of the message that calls. A result without a call is the user's, and a system
 * message is one text.
 * @param messages with the names of functions in their results
 */
export function gemma4Messages(messages: readonly ChatMessage[], source: string): readonly ChatMessage[] {
  const isOlder = !source.includes('tool_call_id');
  const isFirst = isOlder || source.includes('continues_into_next');
  // Looks at who speaks next, and opens a turn where it has ended one.
  const opensTurn = source.includes('next_role');
  const made: ChatMessage[] = [];
  for (let at = 0; at < messages.length; at++) {
    const message = messages[at]!;
    if (callsOf(message).length === 0) {
      made.push(plain(message));
      continue;
    }
    const results: ChatMessage[] = [];
    while (messages[at + 1]?.role === 'tool') results.push(messages[++at]!);
    const isApart = isFirst || (!opensTurn && results.length > 0);
    const called = isApart ? calledApart(message, isFirst && !isOlder) : { calls: message, content: [] };
    if (isFirst) made.push(...called.content);
    if (!isOlder) made.push(called.calls, ...results);
    else {
      const next = messages[at + 1];
      const isAnswer = results.length > 0 && next?.role === 'assistant' && callsOf(next).length === 0;
      const answer = isAnswer && messageText(next) !== '' ? messages[++at]! : null;
      made.push(withResponses(called.calls, results, answer));
    }
    if (!isFirst) made.push(...called.content);
  }
  return made;
}

/** A message without calls. */
function plain(message: ChatMessage): ChatMessage {
  if (message.role === 'tool') return { role: 'user', content: messageText(message) };
  return message.role === 'system' ? { ...message, content: messageText(message) } : message;
}

/**
 * A message's calls, and its content as a message of its own where it has any. @param hasReasoning true where reasoning comes with the
 * content; older templates write it only with calls
 */
function calledApart(
  message: ChatMessage,
  hasReasoning: boolean,
): { calls: ChatMessage; content: ChatMessage[] } {
  const { role, content, reasoning_content: reasoning, ...rest } = message;
  if (messageText(message).trim() === '') return { calls: message, content: [] };
  const isMoved = hasReasoning && reasoning !== undefined;
  return {
    calls: isMoved ? { ...rest, role, content: null } : { ...message, content: null },
    content: [{ role, content: content!, ...(isMoved && { reasoning_content: reasoning }) }],
  };
}

/** The calls with their results, and with the answer that follows. */
function withResponses(
  calls: ChatMessage,
  results: readonly ChatMessage[],
  answer: ChatMessage | null,
): ChatMessage {
  const responses = results.map((result) => ({
    name: result.name ?? 'unknown',
    response: messageText(result),
  }));
  return {
    ...calls,
    ...(results.length > 0 && { tool_responses: responses }),
    ...(answer !== null && { content: answer.content }),
  };
}
