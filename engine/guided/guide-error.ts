import { SkeinError } from '../../base/skein-error.js';

/** A guide that cannot be followed: the message names the part at fault, its place, and what is possible instead. */
export class GuideError extends SkeinError {
  override name = 'GuideError';
  override readonly code: `SKEIN_${string}` = 'SKEIN_GUIDE';
}
