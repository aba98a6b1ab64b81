/** What memory is held for. */
export const HOLDINGS = ['request', 'stored'] as const;
export type Holding = (typeof HOLDINGS)[number];

export interface MemoryLedgerOptions {
  /** Bytes that all together may hold. Default: no limit, and what is held is only counted. */
  limit?: number | undefined;
  /** Whether several API keys share it: then none holds more than half of it with several requests. Default false. */
  isShared?: boolean | undefined;
}

/** Requests above this share of the limit leave the last eighth of it to smaller ones. */
const SMALL_SHARE = 1 / 64;
const LARGE_ONES_SHARE = 7 / 8;
const KEY_SHARE = 1 / 2;

/**
 * The bytes that everything which clients make the server hold may take together, by estimate. Nothing waits for room: what
 * does not fit is refused at once, so that nothing can wait for itself.
 *
 *   0                                               7/8         limit
 *   |  large and small requests, stored responses     |  small    |
 *
 * A request is let in while the rest leaves room for it. Without another request it may fill the limit; beside others a
 * large one leaves the last eighth free, so that a flood of long bodies does not lock out chats. Where several API keys
 * share the server, one has half of the limit, or a single request.
 */
export class MemoryLedger {
  readonly limit: number;
  readonly #isShared: boolean;
  readonly #byHolding: Record<Holding, number> = { request: 0, stored: 0 };
  /** Bytes that requests hold, by the name of their key. */
  readonly #byKey = new Map<string, number>();
  #held = 0;

  constructor({ limit = Number.POSITIVE_INFINITY, isShared = false }: MemoryLedgerOptions = {}) {
    this.limit = limit;
    this.#isShared = isShared;
  }

  /** Bytes that are held now. */
  get held(): number {
    return this.#held;
  }

  heldFor(holding: Holding): number {
    return this.#byHolding[holding];
  }

  /** Keys that hold something. */
  get numKeys(): number {
    return this.#byKey.size;
  }

  /** A hold of nothing yet, to be resized and, once, released. @param key whose request it is; '' where keys are not told apart. */
  open(holding: Holding, key = ''): MemoryHold {
    return new MemoryHold(this, holding, key);
  }

  /** Whether a hold that has `own` bytes now, and `expected` at its end at least, may have `bytes`. */
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
    return !this.#isShared || ofKey === 0 || ofKey + bytes <= most * KEY_SHARE;
  }

  /** Counts a change of what a MemoryHold holds. */
  change(holding: Holding, key: string, difference: number): void {
    this.#held += difference;
    this.#byHolding[holding] += difference;
    if (holding !== 'request') return;
    const ofKey = (this.#byKey.get(key) ?? 0) + difference;
    if (ofKey === 0) this.#byKey.delete(key);
    else this.#byKey.set(key, ofKey);
  }
}

/** What decides whether a hold may grow. */
interface HoldState {
  readonly holding: Holding;
  readonly key: string;
  readonly bytes: number;
  readonly expected: number;
}

/** What one request, or one other thing, holds of a ledger. */
export class MemoryHold {
  readonly holding: Holding;
  readonly key: string;
  /** Bytes that it will have in the end, as far as that is known: a request is large from its beginning. */
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

  /** Whether it could be resized to so many bytes now. */
  hasRoomFor(bytes: number): boolean {
    return !this.#isReleased && this.#ledger.hasRoom(this, bytes);
  }

  /** Whole bytes from now on; false, and nothing changes, where there is no room for them or it was released. */
  resize(bytes: number): boolean {
    const whole = Math.ceil(bytes);
    if (!this.hasRoomFor(whole)) return false;
    this.#ledger.change(this.holding, this.key, whole - this.#bytes);
    this.#bytes = whole;
    return true;
  }

  /** Gives everything back; further calls do nothing. */
  release(): void {
    if (this.#isReleased) return;
    this.#isReleased = true;
    this.#ledger.change(this.holding, this.key, -this.#bytes);
    this.#bytes = 0;
  }
}
