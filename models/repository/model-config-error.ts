import { SkeinError } from '../../base/skein-error.js';

/** A model's configuration, or its folder, is wrong. */
export class ModelConfigError extends SkeinError {
  override name = 'ModelConfigError';
  override readonly code = 'SKEIN_MODEL_CONFIG';
}
