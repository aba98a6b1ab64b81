import { fieldsOf, withPlaces } from '../field-words.js';
import { inOtherWords } from '../other-words.js';
import type { ResponseRequest } from '../schemas/responses.js';
import { keptPlaces } from './kept-tools.js';

/** This route's names for fields of programs and of chats. */
export const RESPONSE_FIELDS = fieldsOf('responses', [
  ['tools[].function', 'tools[]'],
  ['tool_choice.function.name', 'tool_choice.name'],
  ['tool_choice.allowed_tools.tools', 'tool_choice.tools'],
  ['response_format', 'text.format'],
  ['reasoning_effort', 'reasoning.effort'],
  ['messages', 'input'],
]);

/** Runs code shared by chat and responses, and words errors of the request with this route's names. */
export function inResponseWords<T>(
  request: Pick<ResponseRequest, 'tools'>,
  run: () => Promise<T>,
): Promise<T> {
  return inOtherWords(withPlaces(RESPONSE_FIELDS, keptPlaces(request)), run);
}
