import { createHash, timingSafeEqual } from 'node:crypto';

/** Who asks, by the name of the API key. */
export interface Caller {
  /** Not the key itself; '' where the server has no keys. */
  name: string;
  /** The share of the key beside others with fair queueing. */
  weight: number;
  /** Whether it may do what concerns all others too, such as dropping the cache, and see their ids: see ApiKeys. */
  isAdmin: boolean;
  /** Prompts of the same group share the KV cache; null: with all. */
  cacheGroup: string | null;
}

export interface ApiKey extends Pick<Caller, 'name' | 'weight'> {
  key: string;
  /** Default: whether it is the only one. */
  admin?: boolean | undefined;
  /** Keys of one group share the KV cache; default: the key alone. */
  group?: string | undefined;
}

export const ANYBODY: Caller = { name: '', weight: 1, isAdmin: true, cacheGroup: null };

const digest = (text: string) => createHash('sha256').update(text).digest();

/** The keys that are good. A key that is alone is an admin's; of several, those that are said to be. */
export class ApiKeys {
  readonly #keys: readonly { caller: Caller; digest: Buffer }[];

  constructor(keys: readonly ApiKey[]) {
    const isAlone = keys.length === 1;
    this.#keys = keys.map(({ name, weight, key, admin: isAdmin = isAlone, group }) => ({
      // A group may have the name of a key.
      caller: { name, weight, isAdmin, cacheGroup: group === undefined ? `key ${name}` : `group ${group}` },
      digest: digest(key),
    }));
  }

  get count(): number {
    return this.#keys.length;
  }

  get hasAdmin(): boolean {
    return this.#keys.some(({ caller }) => caller.isAdmin);
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
