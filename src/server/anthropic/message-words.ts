import { fieldsOf, withPlaces } from '../web/field-words.js';
import { inOtherWords } from '../web/other-words.js';
import type { CountTokensRequest } from './schemas/messages.js';
import { keptPlaces } from './tool-fields.js';

const FIELDS = fieldsOf('messages', [
  ['tools[].function.parameters', 'tools[].input_schema'],
  ['tools[].function', 'tools[]'],
  ['tool_choice.function.name', 'tool_choice.name'],
  ['response_format', 'output_config.format'],
  ['reasoning_effort', 'output_config.effort'],
]);

/** Runs code shared with chat, and words errors of the request with this route's names. */
export function inMessageWords<T>(request: CountTokensRequest, run: () => Promise<T>): Promise<T> {
  return inOtherWords(withPlaces(FIELDS, keptPlaces(request)), run);
}
