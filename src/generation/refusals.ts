import type { Name, NamedText } from '../../base/named-text.js';
import { field } from '../../base/named-text.js';
import { RequestError } from '../../callbacks/token-request.js';
import { InvalidRequestError } from '../errors/request-errors.js';
import { withPlainNames } from '../options/flag-names.js';
import { optionOfInput } from '../request-vocabulary.js';

const PROMPT_INPUTS: ReadonlySet<string> = new Set(['input_ids', 'promptTokens']);
const GUIDE_INPUTS: ReadonlySet<string> = new Set(['guided_decoding_guide', 'guided_decoding_guide_type']);

/**
 * Rewrites a refusal by the engine in the caller's words: field and message get names of GenerateOptions instead of
 * those of tensors. Any other error is returned unchanged.
 * @param promptParam field that held the prompt. @param guideParam field that gave the answer's form.
 */
export function inCallersWords(
  error: unknown,
  promptParam: string | null,
  guideParam: string | null = null,
): unknown {
  if (!(error instanceof RequestError) || !error.isInvalid) return error;
  const text = inOptions(error.text, guideParam);
  if (error.kind === 'guide') return new InvalidRequestError(text, guideParam, 'invalid_guide');
  if (error.kind === 'noToken') return new InvalidRequestError(text, null, 'no_token_left');
  return new InvalidRequestError(text, paramOf(error.field, promptParam, guideParam));
}

function paramOf(input: string | null, promptParam: string | null, guideParam: string | null): string | null {
  if (input === null) return null;
  if (PROMPT_INPUTS.has(input)) return promptParam;
  return GUIDE_INPUTS.has(input) ? (guideParam ?? 'guided') : optionOfInput(input);
}

/** Replaces names of tensors in a sentence by the caller's fields; tensors without such a field keep their name. */
function inOptions(text: NamedText, guideParam: string | null): NamedText {
  if (typeof text === 'string') return text;
  const named = withPlainNames(text) as readonly (string | Name)[];
  return named.map((part, i) =>
    typeof part === 'string' || part.of !== 'input' ? part : inOption(part, i === 0, guideParam),
  );
}

function inOption({ name }: Name, isFirst: boolean, guideParam: string | null): Name | string {
  if (PROMPT_INPUTS.has(name)) return isFirst ? 'The prompt' : 'the prompt';
  if (GUIDE_INPUTS.has(name)) return field(guideParam ?? 'guided');
  const option = optionOfInput(name);
  return option === null ? name : field(option);
}
