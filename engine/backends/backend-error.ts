import { SkeinError } from '../../base/skein-error.js';

/** A model's files cannot be used, or its backend cannot run here. */
export class BackendError extends SkeinError {
  override name = 'BackendError';
  override readonly code = 'SKEIN_BACKEND';
}
