import { SkeinError } from '../../base/skein-error.js';

/** A model's configuration, or its folder, is wrong. */
export class ModelConfigError extends SkeinError {
  override name = 'ModelConfigError';
  override readonly code = 'SKEIN_MODEL_CONFIG';
  /** The field that is wrong, where the message does not say yet in which file; null: the message is whole. */
  readonly path: readonly (string | number)[] | null;

  constructor(
    message: string,
    { path = null, ...options }: ErrorOptions & { path?: readonly (string | number)[] | null } = {},
  ) {
    super(message, options);
    this.path = path;
  }
}
