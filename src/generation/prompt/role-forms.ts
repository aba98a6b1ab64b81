import type { ChatMessage } from '../../../models/chat-template.js';
import { messageText } from '../messages.js';

/**
 * The same conversation in other orders of roles, the nearest to the given one first, for templates that refuse it:
 *
 *   system a, user b, system c, user d
 *     ->  system a c, user b, user d        the template wants `system` at the beginning
 *     ->  system a c, user b d              it wants roles to take turns
 *     ->  user a c b, user d                it has no role `system`
 *     ->  user a c b d                      both
 *
 * Forms that change nothing are left out.
 */
export function* roleForms(given: readonly ChatMessage[]): Generator<readonly ChatMessage[]> {
  const seen = new Set([given]);
  for (const first of [foldSystem, systemAsUser]) {
    const ordered = first(given);
    for (const form of [ordered, joinNeighbours(ordered)]) {
      if (!seen.has(form)) yield form;
      seen.add(form);
    }
  }
}

/** Folds all texts of the system, in order, into one message at the beginning. */
export function foldSystem(messages: readonly ChatMessage[]): readonly ChatMessage[] {
  const ofSystem = messages.filter(isSystem);
  const isInOrder = ofSystem.length === 0 || (ofSystem.length === 1 && messages[0] === ofSystem[0]);
  if (isInOrder) return messages;
  return [joinedMessage(ofSystem), ...messages.filter((message) => !isSystem(message))];
}

/** Puts all texts of the system, in order, before the first user text. */
function systemAsUser(messages: readonly ChatMessage[]): readonly ChatMessage[] {
  const ofSystem = messages.filter(isSystem);
  if (ofSystem.length === 0) return messages;
  const others = messages.filter((message) => !isSystem(message));
  const told: ChatMessage = { role: 'user', content: joinedTexts(ofSystem) };
  const first = others.findIndex(({ role }) => role === 'user');
  return first < 0 ? [told, ...others] : others.with(first, joinedMessage([told, others[first]!]));
}

/** Joins messages of one role that follow each other. Results of tools stay apart: each answers its own call. */
function joinNeighbours(messages: readonly ChatMessage[]): readonly ChatMessage[] {
  const runs: ChatMessage[][] = [];
  for (const message of messages) {
    const last = runs.at(-1);
    if (last !== undefined && last[0]!.role === message.role && message.role !== 'tool') last.push(message);
    else runs.push([message]);
  }
  return runs.length === messages.length ? messages : runs.map(joinedMessage);
}

function isSystem({ role }: ChatMessage): boolean {
  return role === 'system';
}

/** One message with the texts, the reasoning and the calls of several. */
function joinedMessage(messages: readonly ChatMessage[]): ChatMessage {
  const [first] = messages as [ChatMessage];
  if (messages.length === 1) return first;
  const calls = messages.flatMap(({ tool_calls = [] }) => tool_calls);
  const reasoning = messages.flatMap(({ reasoning_content: text }) =>
    typeof text === 'string' ? [text] : [],
  );
  const text = joinedTexts(messages);
  return {
    ...first,
    content: text === '' && calls.length > 0 ? null : text,
    ...(calls.length > 0 && { tool_calls: calls }),
    ...(reasoning.length > 0 && { reasoning_content: reasoning.join('\n\n') }),
  };
}

function joinedTexts(messages: readonly ChatMessage[]): string {
  return messages
    .map(messageText)
    .filter((text) => text !== '')
    .join('\n\n');
}
