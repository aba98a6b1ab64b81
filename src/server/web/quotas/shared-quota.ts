import { LIMIT_NAMES, type LimitName } from './key-limits.js';
import { type KeyUsage, NO_USAGE, readUsage } from './key-usage.js';

/** What servers that share a key's limits have taken of one of them within a window. */
export interface SharedWindow {
  window: number;
  /** Never more than the limit: each server lets in only what it was granted. */
  granted: number;
}

/** A key's record, which all servers that share its limits change by compare-and-set. */
export interface SharedQuota {
  windows: Partial<Record<LimitName, SharedWindow>>;
  /** Day of `usage`, as windows of days are numbered. */
  day: number;
  /** What the key's requests have taken on that day, as far as servers have reported. */
  usage: KeyUsage;
}

/** The record of a key that has none. */
export const nothingShared = (): SharedQuota => ({ windows: {}, day: 0, usage: { ...NO_USAGE } });

export const sharedText = (shared: SharedQuota): string => JSON.stringify(shared);

/** Reads a record; what is wrong in it counts as nothing. */
export function readShared(text: string): SharedQuota {
  const shared = nothingShared();
  let read: Readonly<Record<string, unknown>>;
  try {
    read = (JSON.parse(text) ?? {}) as Readonly<Record<string, unknown>>;
  } catch {
    return shared;
  }
  const windows = (read.windows ?? {}) as Readonly<Record<string, Partial<SharedWindow> | null>>;
  for (const name of LIMIT_NAMES) {
    const { window, granted } = windows[name] ?? {};
    if (isCount(window) && isCount(granted)) shared.windows[name] = { window, granted };
  }
  const usage = readUsage(read.usage);
  if (usage !== null && isCount(read.day)) Object.assign(shared, { day: read.day, usage });
  return shared;
}

const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;
