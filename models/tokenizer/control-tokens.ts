/**
 * Tokens that models take as marks and never as text, though published vocabularies do not call them special: those of
 * calls, results and reasoning, and those between bars.
 */
const MARKS = /^(?:<\/?(?:think|tool_call|tool_response|tools)>|<\|[^|]+\|>)$/;

/** True where text that spells this added token stays text in a user's message. */
export function isControlToken(token: { content: string; special: boolean }): boolean {
  return token.special || MARKS.test(token.content);
}
