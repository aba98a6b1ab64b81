import { SkeinError } from '../base/skein-error.js';

/** The user asked for something that does not exist or does not fit. The message says what would. */
export class UsageError extends SkeinError {
  override name = 'UsageError';
  override readonly code = 'SKEIN_USAGE';
}
