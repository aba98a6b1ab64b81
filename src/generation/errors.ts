import type { NamedText } from '../../base/named-text.js';
import { SkeinError } from '../../base/skein-error.js';

/** The request itself is at fault. `param` names the field, where there is one. */
export class InvalidRequestError extends SkeinError {
  override name = 'InvalidRequestError';
  override readonly code: `SKEIN_${string}` = 'SKEIN_INVALID_REQUEST';
  readonly param: string | null;
  /** What OpenAI's API calls this kind of mistake, where it has a word. */
  readonly apiCode: string | null;

  constructor(text: NamedText, param: string | null = null, apiCode: string | null = null) {
    super(text);
    this.param = param;
    this.apiCode = apiCode;
  }
}

/** The prompt, or the prompt with the tokens asked for, is longer than the model's context. */
export class ContextLengthError extends InvalidRequestError {
  override name = 'ContextLengthError';
  override readonly code = 'SKEIN_CONTEXT_LENGTH';

  constructor(text: NamedText, param: string | null) {
    super(text, param, 'context_length_exceeded');
  }
}

/** The machine was too busy to check a guide: the guide is not at fault. */
export class GuideCheckTimeError extends SkeinError {
  override name = 'GuideCheckTimeError';
  override readonly code = 'SKEIN_GUIDE_CHECK_TIME';
}
