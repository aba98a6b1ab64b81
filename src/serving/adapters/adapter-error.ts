import type { NamedText } from '../../../base/named-text.js';
import { SkeinError } from '../../../base/skein-error.js';

/**
 *   unknown   there is no adapter of this name
 *   taken     there is one already, or it is being loaded
 *   full      those that are loaded leave no room
 *   none      the model takes none
 *   name      it can be no name
 */
export type AdapterErrorReason = 'unknown' | 'taken' | 'full' | 'none' | 'name';

/** An error for an adapter that cannot be loaded, unloaded or used, although its files may be right. */
export class AdapterError extends SkeinError {
  override name = 'AdapterError';
  override readonly code = 'SKEIN_ADAPTER';
  readonly reason: AdapterErrorReason;

  constructor(text: NamedText, reason: AdapterErrorReason) {
    super(text);
    this.reason = reason;
  }
}
