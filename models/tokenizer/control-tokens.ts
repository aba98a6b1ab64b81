import type { AddedTokenJson, TokenizerJson } from './tokenizer-json.js';

/**
 * Tokens that models take as marks and never as text, though published vocabularies do not call them special: those of
 * calls, results and reasoning, and those between bars or with one on the inside.
 */
const MARKS = /^(?:<\/?(?:think|tool_call|tool_response|tools)>|<\|[^|]+\|>|<\|[a-z_]+>|<[a-z_]+\|>)$/;

/** True where text that spells this added token stays text in a user's message. */
export function isControlToken(token: { content: string; special: boolean }): boolean {
  return token.special || MARKS.test(token.content);
}

/**
 * Texts of the control tokens of a tokenizer.json, but for those that are found in normalized text: they
 * cannot be distinguished from a user's there.
 */
export function controlTexts({ added_tokens: added, normalizer }: TokenizerJson): ReadonlySet<string> {
  const normalized = new Set(normalizer && added.filter(isNormalized).map(({ content }) => content));
  // Of tokens with one id the last one counts.
  const byId = new Map(added.map((token) => [token.id, token]));
  const controls = [...byId.values()].filter(
    ({ content, special = false }) => isControlToken({ content, special }) && !normalized.has(content),
  );
  return new Set(controls.map(({ content }) => content));
}

/** True for tokens found in normalized text; special tokens are always found in the text as it came. */
export function isNormalized(token: AddedTokenJson): boolean {
  return !token.special && (token.normalized ?? true);
}
