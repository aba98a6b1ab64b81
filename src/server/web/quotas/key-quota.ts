import {
  type Amounts,
  amountOf,
  DAY_MS,
  type KeyLimits,
  LIMIT_NAMES,
  LIMITS,
  type LimitName,
  type LimitState,
  leftOf,
  type Unit,
  windowAt,
} from './key-limits.js';
import { added, isNothing, type KeyUsage, NO_USAGE } from './key-usage.js';
import type { SharedQuota } from './shared-quota.js';

/** What this server has of a limit within a window. */
interface Held {
  window: number;
  /** What it was granted, and what it has let in of that. */
  granted: number;
  used: number;
  /** What all servers were granted, when this one looked last. */
  shared: number;
}

/** What was let in, and in which windows. */
export interface Taken {
  amounts: Amounts;
  windows: ReadonlyMap<LimitName, number>;
}

/** A limit that has less left than is wanted. */
export interface Shortage extends LimitState {
  window: number;
  wanted: number;
}

/** A key's record as it is to be written, and what this server has by it once it is. */
export interface Draw {
  after: SharedQuota;
  grants: ReadonlyMap<LimitName, { window: number; amount: number; shared: number }>;
  usage: KeyUsage;
}

/**
 * What one server has of one key's limits: a state machine without clock or I/O.
 *
 *   record of the key   granted 4000 of 10,000 in minute 17
 *        draw -> the record as it is to be, and a grant, a slice of the limit at least
 *        written? accept: the grant is this server's    not written: nothing has changed
 *   take    within what was granted, which needs no other server
 *   settle  what was taken and not used may be taken again, as long as its window lasts
 *   spare   what is not needed here goes back into the record
 *
 * All grants of a window together are never more than the limit, and what is let in is never more than was
 * granted. So even if a server dies or a message is lost, no window exceeds its limit; what a dead server had
 * and did not use is lost until the window is over. Windows only go forward: a server whose clock is late
 * takes part in the window of the others.
 */
export class KeyQuota {
  readonly #held = new Map<LimitName, Held>();
  /** What was used and does not stand in the record yet. */
  #untold: KeyUsage = { ...NO_USAGE };
  /** It was taken from since `hasNews` was asked, and before that. */
  #isTaken = false;
  #isBusy = false;

  #current(name: LimitName, nowMs: number): Held {
    const window = windowAt(name, nowMs);
    const held = this.#held.get(name);
    if (held !== undefined && held.window >= window) return held;
    const next = { window, granted: 0, used: 0, shared: 0 };
    this.#held.set(name, next);
    return next;
  }

  /** Notes what all servers were granted, as the record has it. */
  look({ windows }: SharedQuota): void {
    for (const name of LIMIT_NAMES) {
      const found = windows[name];
      const held = this.#held.get(name);
      if (found === undefined) continue;
      if (held === undefined || held.window < found.window)
        this.#held.set(name, { window: found.window, granted: 0, used: 0, shared: found.granted });
      else if (held.window === found.window) held.shared = found.granted;
    }
  }

  /** The first limit that is less than these amounts, whatever is left of it; null: none. */
  tooLarge(amounts: Amounts, limits: KeyLimits): LimitName | null {
    return LIMIT_NAMES.find((name) => amountOf(name, amounts) > (limits[name] ?? Infinity)) ?? null;
  }

  /** More has to be drawn for these amounts. */
  lacks(amounts: Amounts, limits: KeyLimits, nowMs: number): boolean {
    return LIMIT_NAMES.some((name) => {
      if (limits[name] === undefined) return false;
      const { granted, used } = this.#current(name, nowMs);
      return granted - used < amountOf(name, amounts);
    });
  }

  /** Lets these amounts in, of which nothing lacks. */
  take(amounts: Amounts, limits: KeyLimits, nowMs: number): Taken {
    const windows = new Map<LimitName, number>();
    for (const name of LIMIT_NAMES) {
      if (limits[name] === undefined) continue;
      const held = this.#current(name, nowMs);
      held.used += amountOf(name, amounts);
      windows.set(name, held.window);
    }
    this.#isTaken = true;
    return { amounts, windows };
  }

  /** What was taken has come to its end. @param used at most what was taken */
  settle({ amounts, windows }: Taken, used: Amounts): void {
    for (const [name, window] of windows) {
      const held = this.#held.get(name);
      if (held?.window === window) held.used -= amountOf(name, amounts) - amountOf(name, used);
    }
  }

  /** Counts what was used, for the costs of the day. */
  count(usage: Readonly<KeyUsage>): void {
    this.#untold = added(this.#untold, usage);
  }

  /**
   * What has to be written so that these amounts can be taken.
   * @param before the record as it is @param slice share of a limit that is drawn at least
   */
  draw(
    before: SharedQuota,
    amounts: Amounts,
    limits: KeyLimits,
    slice: number,
    nowMs: number,
  ): Draw | Shortage {
    const windows = { ...before.windows };
    const grants = new Map<LimitName, { window: number; amount: number; shared: number }>();
    for (const name of LIMIT_NAMES) {
      const limit = limits[name];
      if (limit === undefined) continue;
      const held = this.#current(name, nowMs);
      const found = before.windows[name] ?? { window: 0, granted: 0 };
      const window = Math.max(held.window, found.window);
      const wanted = amountOf(name, amounts);
      const lacking = wanted - (held.window === window ? held.granted - held.used : 0);
      const granted = found.window === window ? found.granted : 0;
      const left = Math.max(0, limit - granted);
      if (lacking > left) {
        const remaining = left + wanted - lacking;
        return { name, limit, window, wanted, remaining, resetMs: leftOf(name, window, nowMs) };
      }
      const amount = lacking <= 0 ? 0 : Math.min(left, Math.max(lacking, Math.ceil(limit * slice)));
      windows[name] = { window, granted: granted + amount };
      grants.set(name, { window, amount, shared: granted + amount });
    }
    return { after: this.#told(before, windows, nowMs), grants, usage: this.#untold };
  }

  #told(before: SharedQuota, windows: SharedQuota['windows'], nowMs: number): SharedQuota {
    const day = Math.max(before.day, Math.floor(nowMs / DAY_MS));
    const usage = added(before.day === day ? before.usage : NO_USAGE, this.#untold);
    return { windows, day, usage };
  }

  /** The record was written. */
  accept({ grants, usage }: Pick<Draw, 'grants' | 'usage'>): void {
    for (const [name, { window, amount, shared }] of grants) {
      const held = this.#held.get(name);
      if (held === undefined || held.window < window)
        this.#held.set(name, { window, granted: amount, used: 0, shared });
      else if (held.window === window) {
        held.granted += amount;
        held.shared = shared;
      }
    }
    this.#untold = added(this.#untold, usage, -1);
  }

  /**
   * True where there is something to write to the record: what was used, or what has not been needed since
   * the last call.
   */
  hasNews(limits: KeyLimits, nowMs: number): boolean {
    this.#isBusy = this.#isTaken;
    this.#isTaken = false;
    if (!isNothing(this.#untold)) return true;
    return (
      !this.#isBusy &&
      LIMIT_NAMES.some((name) => limits[name] !== undefined && this.#spareOf(name, nowMs) > 0)
    );
  }

  /** It was taken from between the last two questions for news. */
  get isBusy(): boolean {
    return this.#isBusy;
  }

  #spareOf(name: LimitName, nowMs: number): number {
    const { granted, used } = this.#current(name, nowMs);
    return Math.max(0, granted - used);
  }

  /**
   * What has to be written to give the spare amount here to others. Nothing more is taken from it until
   * `keep`.
   * @param givesBack false: only what was used is reported
   */
  spare(before: SharedQuota, limits: KeyLimits, givesBack: boolean, nowMs: number): Draw {
    const windows = { ...before.windows };
    const grants = new Map<LimitName, { window: number; amount: number; shared: number }>();
    for (const name of givesBack ? LIMIT_NAMES : []) {
      const found = before.windows[name];
      if (limits[name] === undefined || found === undefined) continue;
      const held = this.#current(name, nowMs);
      const amount = Math.min(this.#spareOf(name, nowMs), found.granted);
      if (found.window !== held.window || amount === 0) continue;
      held.granted -= amount;
      const shared = found.granted - amount;
      windows[name] = { window: held.window, granted: shared };
      grants.set(name, { window: held.window, amount, shared });
    }
    return { after: this.#told(before, windows, nowMs), grants, usage: this.#untold };
  }

  /** The record with what was spare was surely not written. */
  keep({ grants }: Pick<Draw, 'grants'>): void {
    for (const [name, { window, amount }] of grants) {
      const held = this.#held.get(name);
      if (held?.window === window) held.granted += amount;
    }
  }

  /** The record with what was spare was written. */
  gaveBack({ grants, usage }: Pick<Draw, 'grants' | 'usage'>): void {
    const told = [...grants].map(([name, grant]) => [name, { ...grant, amount: 0 }] as const);
    this.accept({ grants: new Map(told), usage });
  }

  /** The limit of a unit of which least is left; null: the key has none. */
  stateOf(unit: Unit, limits: KeyLimits, nowMs: number): LimitState | null {
    let least: LimitState | null = null;
    for (const name of LIMIT_NAMES) {
      const limit = limits[name];
      if (limit === undefined || LIMITS[name].unit !== unit) continue;
      const { window, granted, used, shared } = this.#current(name, nowMs);
      const remaining = Math.min(limit, Math.max(0, limit - shared + granted - used));
      if (least === null || remaining < least.remaining)
        least = { name, limit, remaining, resetMs: leftOf(name, window, nowMs) };
    }
    return least;
  }

  /** What was used and does not stand in the record yet. */
  get untold(): Readonly<KeyUsage> {
    return this.#untold;
  }
}
