import { SkeinError } from './skein-error.js';

/** An error of a store that other processes share: it cannot be reached now, or has no room. */
export class StoreError extends SkeinError {
  override name = 'StoreError';
  override readonly code = 'SKEIN_STORE';
  /** away: it may answer later. full: it has no room for more. foreign: what lies there is none of this program's. */
  readonly kind: 'away' | 'full' | 'foreign';

  constructor(kind: StoreError['kind'], text: string, options?: ErrorOptions) {
    super(text, options);
    this.kind = kind;
  }
}

/** An error of a process that writes to what another process has taken over. */
export class TakenOverError extends SkeinError {
  override name = 'TakenOverError';
  override readonly code = 'SKEIN_TAKEN_OVER';
}
