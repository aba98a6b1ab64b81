import { ChatTemplateError } from '../../../../models/chat-template.js';
import { ApiError } from '../errors.js';
import { inOtherWords, type OtherNames } from '../other-words.js';

/** Fields of chat that this route calls by other names. */
const NAMES: OtherNames = [
  [/\b(tools\[\d+\])\.function\./g, '$1.'],
  [/\btool_choice\.function\.name\b/g, 'tool_choice.name'],
  [/\btool_choice\.allowed_tools\.tools\b/g, 'tool_choice.tools'],
  [/\bresponse_format\b/g, 'text.format'],
  [/\breasoning_effort\b/g, 'reasoning.effort'],
  [/\bmessages\b/g, 'input'],
];

/** Runs what chat and responses share; errors of a request come in the words of this route. */
export function inResponseWords<T>(run: () => Promise<T>): Promise<T> {
  return inOtherWords(NAMES, async () => {
    try {
      return await run();
    } catch (error) {
      if (error instanceof ChatTemplateError) throw new ApiError(400, error.message, { param: 'input' });
      throw error;
    }
  });
}
