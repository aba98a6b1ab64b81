import { fieldsOf } from '../field-words.js';
import { inOtherWords } from '../other-words.js';

/** What this route calls fields of a program and of a chat. */
export const RESPONSE_FIELDS = fieldsOf('responses', [
  ['tools[].function', 'tools[]'],
  ['tool_choice.function.name', 'tool_choice.name'],
  ['tool_choice.allowed_tools.tools', 'tool_choice.tools'],
  ['response_format', 'text.format'],
  ['reasoning_effort', 'reasoning.effort'],
  ['messages', 'input'],
]);

/** Runs what chat and responses share; errors of a request come in the words of this route. */
export function inResponseWords<T>(run: () => Promise<T>): Promise<T> {
  return inOtherWords(RESPONSE_FIELDS, run);
}
