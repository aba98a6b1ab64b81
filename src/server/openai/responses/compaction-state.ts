import { COMPACTION_SEAL } from './sealed.js';

/** A message that a compaction keeps as it is. */
export interface KeptMessage {
  role: 'user' | 'system';
  text: string;
}

/** The state that an item of type compaction represents. */
export interface CompactionState {
  /** What the model wrote of the conversation. */
  summary: string;
  /** Messages before the summary; null: those are items of their own, and nothing before this item is left out. */
  before: readonly KeptMessage[] | null;
  /** Messages after it, which it does not cover. */
  after: readonly KeptMessage[];
}

/** Most messages in a state. */
export const MAX_KEPT_MESSAGES = 256;

const LETTERS = { user: 'u', system: 's' } as const;
const ROLES = { u: 'user', s: 'system' } as const;

/**
 * A state as `encrypted_content`. The lengths (in UTF-16 units) come first, so that reading what a client sends costs no
 * more than its length:
 *
 *   1 11 | s9 u5 | u3 ⏎ the summary be brief hello and       before: null is 0, else 1
 */
export function sealedState({ summary, before, after }: CompactionState): string {
  const lengths = (messages: readonly KeptMessage[]) =>
    messages.map(({ role, text }) => `${LETTERS[role]}${text.length}`).join(' ');
  const head = `${before === null ? 0 : 1} ${summary.length} | ${lengths(before ?? [])} | ${lengths(after)}\n`;
  const texts = [summary, ...[...(before ?? []), ...after].map(({ text }) => text)];
  return COMPACTION_SEAL.seal(head + texts.join(''));
}

/** The state that was sealed; null: this server has not made it. */
export function openedState(content: string): CompactionState | null {
  const text = COMPACTION_SEAL.open(content);
  const head = text === null ? null : /^([01]) (\d{1,9}) \| ([us\d ]*) \| ([us\d ]*)\n/.exec(text);
  if (text === null || head === null) return null;
  const [whole, isWhole, length, before, after] = head as unknown as [string, string, string, string, string];
  let at = whole.length;
  const take = (units: number): string => {
    at += units;
    return text.slice(at - units, at);
  };
  const summary = take(Number(length));
  const messages = (list: string): KeptMessage[] =>
    list
      .split(' ', MAX_KEPT_MESSAGES + 1)
      .filter((one) => one !== '')
      .map((one) => ({ role: ROLES[one[0] as 'u' | 's'] ?? 'user', text: take(Number(one.slice(1)) || 0) }));
  const state = { summary, before: messages(before), after: messages(after) };
  const isOurs = at === text.length && state.before.length + state.after.length <= MAX_KEPT_MESSAGES;
  return isOurs ? { ...state, before: isWhole === '1' ? state.before : null } : null;
}
