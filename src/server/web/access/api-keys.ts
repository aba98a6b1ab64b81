import { createHash, timingSafeEqual } from 'node:crypto';
import type { KeyLimits } from '../quotas/key-limits.js';

/** The sender of a request, known by the name of the API key. */
export interface Caller {
  /** Name of the key, not the key itself; '' where the server has no keys. */
  name: string;
  /** Weight of the key relative to others, with fair queueing. */
  weight: number;
  /**
   * True where the caller may do what concerns all callers, such as dropping the cache, and may see others' ids: see
   * ApiKeys.
   */
  isAdmin: boolean;
  /** Group whose prompts share the KV cache; null: all callers share it. */
  cacheGroup: string | null;
  /** What it may take of the server; absent: as much as there is. */
  limits?: KeyLimits | undefined;
}

export interface ApiKey extends Pick<Caller, 'name' | 'weight' | 'limits'> {
  key: string;
  /** True for an admin's key; default: true for a key that is the only one. */
  admin?: boolean | undefined;
  /** Group of keys that share the KV cache; default: the key alone. */
  group?: string | undefined;
}

export const ANYBODY: Caller = { name: '', weight: 1, isAdmin: true, cacheGroup: null };

const digest = (text: string) => createHash('sha256').update(text).digest();

/** Valid keys, which may change while a server runs. A single key is an admin's; of several, those that are marked so. */
export class ApiKeys {
  #keys: readonly { caller: Caller; digest: Buffer }[] = [];

  constructor(keys: readonly ApiKey[]) {
    this.replace(keys);
  }

  /** From now on these keys are valid. Requests of a removed key continue. */
  replace(keys: readonly ApiKey[]): void {
    const isAlone = keys.length === 1;
    this.#keys = keys.map(({ name, weight, key, admin: isAdmin = isAlone, group, limits }) => {
      // The prefix keeps a group apart from a key of the same name.
      const cacheGroup = group === undefined ? `key ${name}` : `group ${group}`;
      return { caller: { name, weight, isAdmin, cacheGroup, limits }, digest: digest(key) };
    });
  }

  get count(): number {
    return this.#keys.length;
  }

  /** All callers that have a key, in the order of the keys. */
  get callers(): Caller[] {
    return this.#keys.map(({ caller }) => caller);
  }

  /** True where several keys share the limits: then one has a part of them at most. */
  get isShared(): boolean {
    return this.count > 1;
  }

  get hasAdmin(): boolean {
    return this.#keys.some(({ caller }) => caller.isAdmin);
  }

  /** The caller of a key's name, '' where there are no keys; null for an unknown one. */
  callerNamed(name: string): Caller | null {
    if (this.count === 0) return name === ANYBODY.name ? ANYBODY : null;
    return this.#keys.find(({ caller }) => caller.name === name)?.caller ?? null;
  }

  /**
   * The caller of a key; null for an unknown one. All keys are compared, by digests of one length, so that the time
   * does not depend on the text sent or on whether it is valid.
   */
  callerOf(given: string): Caller | null {
    const asked = digest(given);
    let found: Caller | null = null;
    for (const { caller, digest: own } of this.#keys) if (timingSafeEqual(own, asked)) found = caller;
    return found;
  }
}
