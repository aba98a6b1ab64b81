/** The request itself is at fault. `param` names the field, where there is one. */
export class InvalidRequestError extends Error {
  override name = 'InvalidRequestError';
  readonly param: string | null;
  readonly code: string | null;

  constructor(message: string, param: string | null = null, code: string | null = null) {
    super(message);
    this.param = param;
    this.code = code;
  }
}

/** The prompt, or the prompt with the tokens asked for, is longer than the model's context. */
export class ContextLengthError extends InvalidRequestError {
  override name = 'ContextLengthError';

  constructor(message: string, param: string | null) {
    super(message, param, 'context_length_exceeded');
  }
}

/** The machine was too busy to check a guide: the guide is not at fault. */
export class GuideCheckTimeError extends Error {
  override name = 'GuideCheckTimeError';
}
