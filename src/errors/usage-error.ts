import { SkeinError } from '../../base/skein-error.js';

/** An error for a user's request that names something unknown or invalid. The message says what would work. */
export class UsageError extends SkeinError {
  override name = 'UsageError';
  override readonly code = 'SKEIN_USAGE';
}
