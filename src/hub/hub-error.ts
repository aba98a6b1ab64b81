import { SkeinError } from '../../base/skein-error.js';

/** A repository of models that cannot be had, in one sentence that says what to do where something can be done. */
export class HubError extends SkeinError {
  override name = 'HubError';
  override readonly code = 'SKEIN_HUB';
}
