/** Bounds of what clients may store. */
export interface FileLimits {
  /** Most bytes of one file. */
  maxFileBytes: number;
  /** Most bytes of all files together. */
  maxBytes: number;
  /** Most files. */
  maxFiles: number;
}

const DAY_S = 86_400;
/** Least and most seconds that a file is kept, as in OpenAI's API, from its creation on. */
export const MIN_LIFE_S = 3600;
export const MAX_LIFE_S = 30 * DAY_S;

/** Part of all limits that one of several API keys may use up. */
const KEY_SHARE = 1 / 2;

/** Amounts stored for one API key. */
interface Holding {
  files: number;
  bytes: number;
}

/**
 * Counts what is stored. Limits apply to all API keys together; where there are several, one has half of them, so that
 * it cannot crowd out the others.
 */
export class FileAccount {
  readonly limits: FileLimits;
  readonly #isShared: () => boolean;
  readonly #holdings = new Map<string, Holding>();
  #all: Holding = { files: 0, bytes: 0 };

  constructor(limits: FileLimits, isShared: () => boolean) {
    this.limits = limits;
    this.#isShared = isShared;
  }

  /** What all keys have stored. */
  get all(): Readonly<Holding> {
    return this.#all;
  }

  /** Counts from nothing: others have stored and deleted files too. */
  reset(): void {
    this.#holdings.clear();
    this.#all = { files: 0, bytes: 0 };
  }

  /** Counts further files and bytes of a key, or takes some away. */
  count(owner: string, { files, bytes }: Holding): void {
    const own = this.#of(owner);
    const now = { files: own.files + files, bytes: own.bytes + bytes };
    if (now.files === 0 && now.bytes === 0) this.#holdings.delete(owner);
    else this.#holdings.set(owner, now);
    this.#all = { files: this.#all.files + files, bytes: this.#all.bytes + bytes };
  }

  /** What is in the way of further files and bytes of a key; null: there is room. */
  lack(owner: string, { files, bytes }: Holding): string | null {
    const { maxBytes, maxFiles } = this.limits;
    const share = this.#isShared() ? KEY_SHARE : 1;
    const own = this.#of(owner);
    const ofKey = this.#isShared() ? ', of which one API key has half at most' : '';
    if (this.#all.files + files > maxFiles || own.files + files > Math.max(1, share * maxFiles))
      return `all files together are ${maxFiles} at most (--max-files)${ofKey}`;
    if (this.#all.bytes + bytes > maxBytes || own.bytes + bytes > share * maxBytes)
      return `all files together have ${maxBytes} bytes at most (--max-files-bytes)${ofKey}`;
    return null;
  }

  #of(owner: string): Holding {
    return this.#holdings.get(owner) ?? { files: 0, bytes: 0 };
  }
}
