import type { MemoryHold } from '../../web/memory/held-memory.js';

export interface KeptLimits {
  /** Most values. */
  maxValues: number;
  /** Most bytes, by estimate. */
  maxBytes: number;
}

/** Follows which values are kept. */
export interface KeptFollower<Value> {
  /** A value is kept now, or was changed. */
  kept(owner: string, value: Value): void;
  gone(owner: string, value: Value): void;
}

interface Entry<Value> {
  value: Value;
  bytes: number;
  owner: string;
}

/** Amounts kept for one API key. */
interface Holding {
  values: number;
  bytes: number;
}

/**
 * Values by id, in memory, separate for each API key. Limits apply to all keys together; where they are passed, the key
 * that keeps the most loses what it used longest ago, so that one key cannot crowd out the others.
 */
export class KeptValues<Value> {
  readonly #limits: KeptLimits;
  /** Entries in the order of their last use. */
  readonly #entries = new Map<string, Entry<Value>>();
  readonly #holdings = new Map<string, Holding>();
  readonly #hold: MemoryHold | null;
  readonly #follower: KeptFollower<Value>;
  #bytes = 0;

  /** @param hold memory account of the values; values are dropped where it has no room. */
  constructor(limits: KeptLimits, hold: MemoryHold | null, follower: KeptFollower<Value>) {
    this.#limits = limits;
    this.#hold = hold;
    this.#follower = follower;
  }

  get size(): number {
    return this.#entries.size;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Keeps a value in place of the one that had its id, unless it alone exceeds the limits. */
  put(owner: string, id: string, value: Value, bytes: number): void {
    const before = this.#take(owner, id);
    const isTooLarge = bytes > this.#limits.maxBytes;
    if (before !== null && (isTooLarge || before !== value)) this.#follower.gone(owner, before);
    if (isTooLarge) return;
    this.#entries.set(id, { value, bytes, owner });
    this.#count(owner, 1, bytes);
    this.#follower.kept(owner, value);
    while (this.#entries.size > this.#limits.maxValues) this.#forgetOldestOf(this.#greatest('values'));
    while (this.#isTooMuch()) this.#forgetOldestOf(this.#greatest('bytes'));
  }

  /** The value of an id, which counts as its use; null: this owner has none. */
  get(owner: string, id: string): Value | null {
    const entry = this.#entries.get(id);
    if (entry?.owner !== owner) return null;
    this.#entries.delete(id);
    this.#entries.set(id, entry);
    return entry.value;
  }

  /** Removes a value. Returns false where this owner has none. */
  forget(owner: string, id: string): boolean {
    const value = this.#take(owner, id);
    if (value === null) return false;
    this.#follower.gone(owner, value);
    return true;
  }

  /** Takes a value out of the entries; null: this owner has none. */
  #take(owner: string, id: string): Value | null {
    const entry = this.#entries.get(id);
    if (entry?.owner !== owner) return null;
    this.#entries.delete(id);
    this.#count(owner, -1, -entry.bytes);
    return entry.value;
  }

  #isTooMuch(): boolean {
    if (this.#entries.size === 0) return false;
    return this.#bytes > this.#limits.maxBytes || this.#hold?.resize(this.#bytes) === false;
  }

  #count(owner: string, values: number, bytes: number): void {
    const holding = this.#holdings.get(owner) ?? { values: 0, bytes: 0 };
    holding.values += values;
    holding.bytes += bytes;
    this.#bytes += bytes;
    if (bytes < 0) this.#hold?.resize(this.#bytes);
    if (holding.values === 0) this.#holdings.delete(owner);
    else this.#holdings.set(owner, holding);
  }

  /** Key that keeps the most; there is at least one. */
  #greatest(what: keyof Holding): string {
    const [first, ...others] = this.#holdings;
    return others.reduce((most, one) => (one[1][what] > most[1][what] ? one : most), first!)[0];
  }

  #forgetOldestOf(owner: string): void {
    for (const [id, entry] of this.#entries) if (entry.owner === owner) return void this.forget(owner, id);
  }
}
