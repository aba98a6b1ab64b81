import { ChatTemplateError } from '../../../../models/chat-template.js';
import { InvalidRequestError } from '../../../generation/errors.js';
import { ApiError, toApiError } from '../errors.js';

/** Fields of chat that this route calls by other names. */
const NAMES: readonly (readonly [RegExp, string])[] = [
  [/\b(tools\[\d+\])\.function\./g, '$1.'],
  [/\btool_choice\.function\.name\b/g, 'tool_choice.name'],
  [/\btool_choice\.allowed_tools\.tools\b/g, 'tool_choice.tools'],
  [/\bresponse_format\b/g, 'text.format'],
  [/\breasoning_effort\b/g, 'reasoning.effort'],
  [/\bmessages\b/g, 'input'],
];

function renamed(text: string): string {
  return NAMES.reduce((result, [name, own]) => result.replaceAll(name, own), text);
}

/** Runs what chat and responses share; errors of a request come in the words of this route. */
export async function inResponseWords<T>(run: () => Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    if (error instanceof ChatTemplateError) throw new ApiError(400, error.message, { param: 'input' });
    if (!(error instanceof InvalidRequestError) && !(error instanceof ApiError)) throw error;
    const known = toApiError(error);
    if (known.status !== 400 || known.param === null) throw error;
    const { type, code, headers, param } = known;
    throw new ApiError(400, renamed(known.message), {
      type,
      code,
      headers: { ...headers },
      param: renamed(param),
    });
  }
}
