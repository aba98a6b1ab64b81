import type { TokenPiece, TokenRequest } from '../../callbacks/token-request.js';
import type { WorkItem } from './messages.js';

/**
 * How the work for an attempt ended:
 *
 *   answered   all sequences that were wanted have ended
 *   prefilled  the blocks of its prompt were all that was wanted
 *   failed     its gateway received the reason
 *   dropped    no request waits for it any more
 */
export type WorkEnd = 'answered' | 'prefilled' | 'failed' | 'dropped';

/** Follows what a worker does for one attempt of a request. Times are those of the calls. */
export interface WorkObserver {
  /** Blocks of its prompt, which another worker has computed, have come as far as they will. */
  onBlocks(): void;
  /** The engine has it. */
  onSubmit(): void;
  onPiece(piece: TokenPiece): void;
  /** Called once. @param reason of a failure, in the words that its gateway receives */
  onEnd(end: WorkEnd, reason?: string): void;
}

/** null: this attempt is not observed. */
export type ObserveWork = (item: WorkItem, request: TokenRequest) => WorkObserver | null;
