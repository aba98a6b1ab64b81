import { SkeinError } from '../../../base/skein-error.js';

/**
 * Why a chat gave no answer:
 *
 *   busy       another turn of the same chat is not over
 *   cut        the limit of tokens or time came before the object was whole
 *   mismatch   the object is JSON, but not what its schema accepts
 *   waiting    calls wait for their results, which have to come first
 */
export type ChatErrorReason = 'busy' | 'cut' | 'mismatch' | 'waiting';

/** An error for a turn of a chat that could not be taken, or whose answer is not what was asked for. */
export class ChatError extends SkeinError {
  override name = 'ChatError';
  override readonly code = 'SKEIN_CHAT';
  readonly reason: ChatErrorReason;

  constructor(text: string, reason: ChatErrorReason) {
    super(text);
    this.reason = reason;
  }
}
