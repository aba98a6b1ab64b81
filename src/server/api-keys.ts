import { createHash, timingSafeEqual } from 'node:crypto';

/** Who asks, by the name of the API key. */
export interface Caller {
  /** Not the key itself; '' where the server has no keys. */
  name: string;
  /** The share of the key beside others with fair queueing. */
  weight: number;
  /** Whether it may do what concerns all others too, such as dropping the cache: see ApiKeys. */
  isAdmin: boolean;
}

export interface ApiKey extends Omit<Caller, 'isAdmin'> {
  key: string;
  /** Default false. */
  admin?: boolean;
}

export const ANYBODY: Caller = { name: '', weight: 1, isAdmin: true };

const digest = (text: string) => createHash('sha256').update(text).digest();

/** The keys that are good. Where one of them is an admin's, the others are not; else each is. */
export class ApiKeys {
  readonly #keys: readonly { caller: Caller; digest: Buffer }[];

  constructor(keys: readonly ApiKey[]) {
    const hasAdmin = keys.some(({ admin }) => admin === true);
    this.#keys = keys.map(({ name, weight, key, admin = false }) => ({
      caller: { name, weight, isAdmin: admin || !hasAdmin },
      digest: digest(key),
    }));
  }

  get count(): number {
    return this.#keys.length;
  }

  /**
   * Whose key it is, or null. Digests have one length and all of them are compared, so that it takes the same time
   * whatever was sent and whether it is good.
   */
  callerOf(given: string): Caller | null {
    const asked = digest(given);
    let found: Caller | null = null;
    for (const { caller, digest: own } of this.#keys) if (timingSafeEqual(own, asked)) found = caller;
    return found;
  }
}
