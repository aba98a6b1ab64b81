/** Kinds of memory held for clients. */
export const HOLDINGS = ['request', 'stored'] as const;
export type Holding = (typeof HOLDINGS)[number];

export interface MemoryLedgerOptions {
  /** Most bytes held for all clients together. Default: no limit; bytes are only counted. */
  limit?: number | undefined;
  /**
   * Returns true where several API keys share the limit: then no key holds more than half of it with several requests.
   * Default: never.
   */
  isShared?: (() => boolean) | undefined;
}

/** Share of the limit above which a request is large: large ones leave the last eighth to smaller ones. */
const SMALL_SHARE = 1 / 64;
const LARGE_ONES_SHARE = 7 / 8;
const KEY_SHARE = 1 / 2;

/**
 * Limits the bytes that all clients together make the server hold, by estimate. Nothing waits for room: a request that
 * does not fit is refused at once, so that nothing can wait for itself.
 *
 *   0                                               7/8         limit
 *   |  large and small requests, stored responses     |  small    |
 *
 * A request is let in while the rest leaves room for it. Without another request it may fill the limit;
 * alongside others a large one leaves the last eighth free, so that a flood of long bodies does not lock out
 * chats. Where several API keys share the server, one has half of the limit, or a single request.
 */
export class MemoryLedger {
  readonly limit: number;
  readonly #isShared: () => boolean;
  readonly #byHolding: Record<Holding, number> = { request: 0, stored: 0 };
  /** Bytes held by requests, by the name of their key. */
  readonly #byKey = new Map<string, number>();
  #held = 0;

  constructor({ limit = Number.POSITIVE_INFINITY, isShared = () => false }: MemoryLedgerOptions = {}) {
    this.limit = limit;
    this.#isShared = isShared;
  }

  /** Bytes held now. */
  get held(): number {
    return this.#held;
  }

  heldFor(holding: Holding): number {
    return this.#byHolding[holding];
  }

  /** Number of keys that hold bytes. */
  get numKeys(): number {
    return this.#byKey.size;
  }

  /**
   * Opens a hold of 0 bytes, to be resized and, once, released. @param key name of the request's key; '' where keys are
   * not told apart.
   */
  open(holding: Holding, key = ''): MemoryHold {
    return new MemoryHold(this, holding, key);
  }

  /** True where a hold that has `own` bytes now, and at least `expected` at its end, may have `bytes`. */
  hasRoom({ holding, key, bytes: own, expected }: HoldState, bytes: number): boolean {
    if (bytes <= own) return true;
    const most = this.limit;
    const total = this.#held - own + bytes;
    if (total > most) return false;
    if (holding !== 'request') return total <= most * LARGE_ONES_SHARE;
    const ofOthers = this.#byHolding.request - own;
    const isLarge = Math.max(bytes, expected) > most * SMALL_SHARE;
    if (ofOthers > 0 && isLarge && total > most * LARGE_ONES_SHARE) return false;
    const ofKey = (this.#byKey.get(key) ?? 0) - own;
    return !this.#isShared() || ofKey === 0 || ofKey + bytes <= most * KEY_SHARE;
  }

  /** Counts a change in the size of a hold. */
  change(holding: Holding, key: string, difference: number): void {
    this.#held += difference;
    this.#byHolding[holding] += difference;
    if (holding !== 'request') return;
    const ofKey = (this.#byKey.get(key) ?? 0) + difference;
    if (ofKey === 0) this.#byKey.delete(key);
    else this.#byKey.set(key, ofKey);
  }
}

/** Facts about a hold that decide whether it may grow. */
interface HoldState {
  readonly holding: Holding;
  readonly key: string;
  readonly bytes: number;
  readonly expected: number;
}

/** Bytes of a ledger held by one request, or by one other thing. */
export class MemoryHold {
  readonly holding: Holding;
  readonly key: string;
  /**
   * Bytes that it will have in the end, as far as that is known: a large request counts as large from its beginning.
   */
  expected = 0;
  readonly #ledger: MemoryLedger;
  #bytes = 0;
  #isReleased = false;

  constructor(ledger: MemoryLedger, holding: Holding, key: string) {
    this.#ledger = ledger;
    this.holding = holding;
    this.key = key;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** True where it could be resized to this number of bytes now. */
  hasRoomFor(bytes: number): boolean {
    return !this.#isReleased && this.#ledger.hasRoom(this, bytes);
  }

  /** Sets its size in bytes, rounded up; false, without a change, where there is no room or it was released. */
  resize(bytes: number): boolean {
    const whole = Math.ceil(bytes);
    if (!this.hasRoomFor(whole)) return false;
    this.#ledger.change(this.holding, this.key, whole - this.#bytes);
    this.#bytes = whole;
    return true;
  }

  /** Gives all bytes back; further calls do nothing. */
  release(): void {
    if (this.#isReleased) return;
    this.#isReleased = true;
    this.#ledger.change(this.holding, this.key, -this.#bytes);
    this.#bytes = 0;
  }
}
