/** What a limit counts. */
export type Unit = 'requests' | 'tokens';

const MINUTE_MS = 60_000;
export const DAY_MS = 86_400_000;

/**
 * The limits that a key may have, by their fields in the file of keys. A window begins at a whole minute, or day of UTC, and counts what
 * was let in within it.
 */
export const LIMITS = {
  requests_per_minute: { unit: 'requests', windowMs: MINUTE_MS, words: 'requests per minute' },
  tokens_per_minute: { unit: 'tokens', windowMs: MINUTE_MS, words: 'tokens per minute' },
  requests_per_day: { unit: 'requests', windowMs: DAY_MS, words: 'requests per day' },
  tokens_per_day: { unit: 'tokens', windowMs: DAY_MS, words: 'tokens per day' },
} as const satisfies Readonly<Record<string, { unit: Unit; windowMs: number; words: string }>>;

export type LimitName = keyof typeof LIMITS;
export const LIMIT_NAMES = Object.keys(LIMITS) as readonly LimitName[];

/** The limits of a key; one that is absent is none. */
export type KeyLimits = Readonly<Partial<Record<LimitName, number>>>;

/** What something takes of a key's limits. */
export type Amounts = Readonly<Record<Unit, number>>;

export const amountOf = (name: LimitName, amounts: Amounts): number => amounts[LIMITS[name].unit];

/** Number of the window that a time lies in, since 1970. */
export const windowAt = (name: LimitName, nowMs: number): number => Math.floor(nowMs / LIMITS[name].windowMs);

/** Milliseconds until a window is over. */
export const leftOf = (name: LimitName, window: number, nowMs: number): number =>
  Math.max(0, (window + 1) * LIMITS[name].windowMs - nowMs);

/** How far a limit is used. */
export interface LimitState {
  name: LimitName;
  limit: number;
  /** What may still be let in, by all servers together, as far as this one knows. */
  remaining: number;
  /** Milliseconds until nothing of it is used any more. */
  resetMs: number;
}
