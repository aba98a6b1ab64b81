/**
 * Tokens that models take as marks and never as text, though published vocabularies do not call them special: those of
 * calls, results and reasoning, and those written between bars.
 */
const MARKS = /^(?:<\/?(?:think|tool_call|tool_response|tools)>|<\|[^|]+\|>)$/;

/** Whether text that spells this added token is to stay text where a user wrote it. */
export function isControlToken(token: { content: string; special: boolean }): boolean {
  return token.special || MARKS.test(token.content);
}
