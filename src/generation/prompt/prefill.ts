import type { ChatMessage } from '../../../models/chat-template.js';
import type { HarmonyStart } from '../harmony/parser.js';
import { CHANNEL, END, MESSAGE } from '../harmony/tokens.js';
import { messageText } from '../messages.js';
import type { ReasoningMarks, ReasoningStart } from '../reasoning/reasoning-marks.js';
import { marksOf, type ReasoningParserName } from '../reasoning/reasoning-style.js';
import type { ChatRenderOptions } from '../text-model.js';

/** A conversation, and how its prompt ends. */
export interface PromptEnd {
  messages: readonly ChatMessage[];
  render: Pick<ChatRenderOptions, 'addGenerationPrompt' | 'continueFinalMessage' | 'begunReasoning'>;
  /** How the answer continues; null: without reasoning, undefined: the prompt's end decides. */
  start: ReasoningStart | null | undefined;
}

type EndOptions = Pick<ChatRenderOptions, 'addGenerationPrompt' | 'continueFinalMessage'>;

/**
 * Reads how far the last message has come, where the answer is to continue it:
 *
 *   reasoning_content "Hm"                  the answer goes on within the reasoning
 *   content "<think>Hm"                     the same
 *   reasoning_content "Hm.", content "Ye"   it goes on with the content
 */
export function promptEnd(
  { messages, addGenerationPrompt, continueFinalMessage }: { messages: readonly ChatMessage[] } & EndOptions,
  style: ReasoningParserName,
): PromptEnd {
  const asGiven = { messages, render: { addGenerationPrompt, continueFinalMessage } };
  const last = messages.at(-1);
  if (!continueFinalMessage || last === undefined || style === 'none')
    return { ...asGiven, start: undefined };
  const marks = marksOf(style);
  const open = openReasoning(last, marks);
  if (open === null) return { ...asGiven, start: null };
  const text = open.text.trimStart();
  const begunReasoning = { begin: marks.begin + marks.label, end: marks.end, gap: marks.gap, text };
  const start = text === '' ? 'open' : 'inside';
  // Templates end reasoning with each message that they write, or leave it out.
  const render = { addGenerationPrompt: true, continueFinalMessage: false, begunReasoning };
  return open.isWhole ? { messages: messages.slice(0, -1), render, start } : { ...asGiven, start };
}

/** The same in the harmony format, whose answers have no start of reasoning but one of their messages. */
export function harmonyPromptEnd({
  messages,
  addGenerationPrompt,
  continueFinalMessage,
}: { messages: readonly ChatMessage[] } & EndOptions): Pick<PromptEnd, 'messages' | 'render'> & {
  start: HarmonyStart;
} {
  const asGiven = { messages, render: { addGenerationPrompt, continueFinalMessage } };
  const last = messages.at(-1);
  if (!continueFinalMessage || last === undefined) return { ...asGiven, start: 'message' };
  const { reasoning_content: text } = last;
  if (messageText(last).trim() !== '' || typeof text !== 'string' || text === '')
    return { ...asGiven, start: 'final' };
  const begunReasoning = { begin: `${CHANNEL}analysis${MESSAGE}`, end: END, gap: '', text };
  const render = { addGenerationPrompt: true, continueFinalMessage: false, begunReasoning };
  return { messages: messages.slice(0, -1), render, start: 'analysis' };
}

/** The reasoning within which a message ends, and whether it is all of the message; null: it has ended, or there is none. */
function openReasoning(
  message: ChatMessage,
  { begin: mark, label, end }: ReasoningMarks,
): { text: string; isWhole: boolean } | null {
  const content = messageText(message);
  const { reasoning_content: reasoning } = message;
  if (content.trim() === '') {
    const hasText = typeof reasoning === 'string' && reasoning.trim() !== '';
    return hasText ? { text: reasoning, isWhole: true } : null;
  }
  const opening = mark + label;
  const begin = content.lastIndexOf(opening);
  if (begin < 0 || content.includes(end, begin)) return null;
  return { text: content.slice(begin + opening.length), isWhole: content.slice(0, begin).trim() === '' };
}
