import { createHash, timingSafeEqual } from 'node:crypto';

/** Who asks, by the name of the API key. */
export interface Caller {
  /** Not the key itself; '' where the server has no keys. */
  name: string;
  /** The share of the key beside others with fair queueing. */
  weight: number;
}

export interface ApiKey extends Caller {
  key: string;
}

export const ANYBODY: Caller = { name: '', weight: 1 };

const digest = (text: string) => createHash('sha256').update(text).digest();

/** The keys that are good. */
export class ApiKeys {
  readonly #keys: readonly { caller: Caller; digest: Buffer }[];

  constructor(keys: readonly ApiKey[]) {
    this.#keys = keys.map(({ name, weight, key }) => ({ caller: { name, weight }, digest: digest(key) }));
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
