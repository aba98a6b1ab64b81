import { SkeinError } from '../../../../base/skein-error.js';

/** The file that weights are converted into is at fault, and not one that is read. The addon's errors have the same code. */
export class TargetFileError extends SkeinError {
  override name = 'TargetFileError';
  override readonly code = 'SKEIN_TARGET_FILE';
}
