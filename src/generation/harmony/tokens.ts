import type { ShownToken } from '../text-model.js';

/**
 * Special tokens of the harmony format, in which gpt-oss writes answers as messages with a header:
 *
 *   <|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>Yes.<|return|>
 */
export const START = '<|start|>';
export const CHANNEL = '<|channel|>';
export const CONSTRAIN = '<|constrain|>';
export const MESSAGE = '<|message|>';
export const END = '<|end|>';
const CALL = '<|call|>';
const RETURN = '<|return|>';

export const HARMONY_TOKENS = [START, CHANNEL, CONSTRAIN, MESSAGE, END, CALL, RETURN] as const;
export type HarmonyToken = (typeof HARMONY_TOKENS)[number];

/** The first of the marks, which are low surrogates. */
const FIRST_MARK = 0xdf00;

/**
 * One UTF-16 unit that represents a special token in an answer's text. It is a surrogate without the other
 * half, which no text of tokens has: so an answer that only spells `<|end|>` is not taken for one that ends.
 */
export function markOf(token: HarmonyToken): string {
  return String.fromCharCode(FIRST_MARK + HARMONY_TOKENS.indexOf(token));
}

/** The token that a unit represents by itself; null: none. */
export function tokenOfMark(unit: string): HarmonyToken | null {
  return HARMONY_TOKENS[unit.charCodeAt(0) - FIRST_MARK] ?? null;
}

/** True where the vocabulary has the format's tokens as special ones; else they are texts as all others. */
export function areSpecial(specialTexts: ReadonlySet<string>): boolean {
  return [START, CHANNEL, MESSAGE, END].every((token) => specialTexts.has(token));
}

/** The format's special tokens as a parser reads them. */
export function shownHarmony(specialTexts: ReadonlySet<string>): readonly ShownToken[] {
  const special = HARMONY_TOKENS.filter((token) => specialTexts.has(token));
  return areSpecial(specialTexts) ? special.map((token) => ({ token, mark: markOf(token) })) : special;
}

/** True for a chat template that writes messages in this format. */
export function isHarmonyTemplate(source: string | null | undefined): boolean {
  return source != null && [START, CHANNEL, MESSAGE].every((token) => source.includes(token));
}
