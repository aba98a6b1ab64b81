import { SkeinError } from '../../base/skein-error.js';

/** An error for models of the hub that cannot be had; the sentence says what to do where something can be done. */
export class HubError extends SkeinError {
  override name = 'HubError';
  override readonly code = 'SKEIN_HUB';
}
