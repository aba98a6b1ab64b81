import { fieldsOf, withPlaces } from '../../web/field-words.js';
import { inOtherWords } from '../../web/other-words.js';
import type { ToolSet } from './tool-set.js';

/** This route's names for fields of programs and of chats. */
export const RESPONSE_FIELDS = fieldsOf('responses', [
  ['tools[].tools[].function', 'tools[].tools[]'],
  ['tools[].function', 'tools[]'],
  ['input[].tools[].tools[].function', 'input[].tools[].tools[]'],
  ['input[].tools[].function', 'input[].tools[]'],
  ['tool_choice.function.name', 'tool_choice.name'],
  ['tool_choice.allowed_tools.tools', 'tool_choice.tools'],
  ['response_format', 'text.format'],
  ['reasoning_effort', 'reasoning.effort'],
  ['messages', 'input'],
]);

/** Runs code shared by chat and responses, and words errors of the request with this route's names. */
export function inResponseWords<T>({ places }: Pick<ToolSet, 'places'>, run: () => Promise<T>): Promise<T> {
  return inOtherWords(withPlaces(RESPONSE_FIELDS, places), run);
}
