import { SkeinError } from '../base/skein-error.js';

/** What was asked for is not understood or does not go together. The message says what would. */
export class InputError extends SkeinError {
  override name = 'InputError';
  override readonly code = 'SKEIN_LOADGEN_INPUT';
}
