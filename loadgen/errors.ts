import { SkeinError } from '../base/skein-error.js';

/** An error for options that are invalid or exclude each other. The message says what would work. */
export class InputError extends SkeinError {
  override name = 'InputError';
  override readonly code = 'SKEIN_LOADGEN_INPUT';
}

/** An error for a server that cannot be reached, or cannot do what the run needs. */
export class TargetError extends SkeinError {
  override name = 'TargetError';
  override readonly code = 'SKEIN_LOADGEN_TARGET';
}
