import type { NamedText } from '../../base/named-text.js';
import { SkeinError } from '../../base/skein-error.js';

/** An error for a request that is itself at fault. `param` names the field, where one is. */
export class InvalidRequestError extends SkeinError {
  override name = 'InvalidRequestError';
  override readonly code: `SKEIN_${string}` = 'SKEIN_INVALID_REQUEST';
  readonly param: string | null;
  /** Code of this mistake in OpenAI's API; null where it has none. */
  readonly apiCode: string | null;

  constructor(text: NamedText, param: string | null = null, apiCode: string | null = null) {
    super(text);
    this.param = param;
    this.apiCode = apiCode;
  }
}

/** An error for a prompt that is longer than the model's context, alone or with the tokens asked for. */
export class ContextLengthError extends InvalidRequestError {
  override name = 'ContextLengthError';
  override readonly code = 'SKEIN_CONTEXT_LENGTH';

  constructor(text: NamedText, param: string | null) {
    super(text, param, 'context_length_exceeded');
  }
}

/**
 * Beginning of the sentence of a context that is too short, in OpenAI's words: routers such as LiteLLM find it by them, and
 * ask a model with a longer context.
 */
export function contextWords(maxTokens: number): string {
  return `This model's maximum context length is ${maxTokens} tokens. However, `;
}

/** An error for a machine that was too busy to check a guide: the guide is not at fault. */
export class GuideCheckTimeError extends SkeinError {
  override name = 'GuideCheckTimeError';
  override readonly code = 'SKEIN_GUIDE_CHECK_TIME';
}
