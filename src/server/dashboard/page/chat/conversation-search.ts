import type { StoredConversation } from './stored-conversation.js';

/** Characters of the longest text that is looked for, and of what is shown around it. */
export const MAX_SOUGHT = 200;
const AROUND = 40;

/** A conversation in which something was found. */
export interface Found {
  conversation: StoredConversation;
  /** The message that has it, and its words around it; null: the title has it. */
  place: { message: string; words: string } | null;
}

/** The conversations that have a text in their title or in a message of any branch, in any spelling of capitals. */
export function search(conversations: readonly StoredConversation[], text: string): Found[] {
  const sought = folded(text.trim().slice(0, MAX_SOUGHT));
  if (sought === '') return conversations.map((conversation) => ({ conversation, place: null }));
  return conversations.flatMap((conversation): Found[] => {
    if (folded(conversation.title).includes(sought)) return [{ conversation, place: null }];
    for (const { id, text } of conversation.messages) {
      const at = folded(text).indexOf(sought);
      if (at >= 0) return [{ conversation, place: { message: id, words: wordsAt(text, at, sought.length) } }];
    }
    return [];
  });
}

/** Letters without capitals, each as long as it was, so that places stay. */
const folded = (text: string): string =>
  text.toLowerCase().length === text.length
    ? text.toLowerCase()
    : Array.from(text, (letter) =>
        letter.toLowerCase().length === letter.length ? letter.toLowerCase() : letter,
      ).join('');

function wordsAt(text: string, at: number, length: number): string {
  const from = Math.max(0, at - AROUND);
  const to = at + length + AROUND;
  const words = text.slice(from, to).replace(/\s+/g, ' ').trim();
  return `${from > 0 ? '…' : ''}${words}${to < text.length ? '…' : ''}`;
}
