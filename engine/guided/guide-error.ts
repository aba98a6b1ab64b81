import { SkeinError } from '../../base/skein-error.js';

/** A guide that cannot be followed: the message names the part at fault, its place, and what is possible instead. */
export class GuideError extends SkeinError {
  override name = 'GuideError';
  override readonly code: `SKEIN_${string}` = 'SKEIN_GUIDE';
  readonly #clause: string | null;

  constructor(message: string, clause: string | null = null) {
    super(message);
    this.#clause = clause;
  }

  /** What is wrong, as a part of another sentence; null where only the whole message says it. */
  get clause(): string | null {
    return this.#clause;
  }
}
