/** What a key's requests have taken, for its costs. */
export interface KeyUsage {
  requests: number;
  promptTokens: number;
  /** Of these, found in the cache. */
  cachedTokens: number;
  completionTokens: number;
}

export const NO_USAGE: Readonly<KeyUsage> = {
  requests: 0,
  promptTokens: 0,
  cachedTokens: 0,
  completionTokens: 0,
};

const NAMES = Object.keys(NO_USAGE) as (keyof KeyUsage)[];

export function added(a: Readonly<KeyUsage>, b: Readonly<KeyUsage>, sign: 1 | -1 = 1): KeyUsage {
  return Object.fromEntries(NAMES.map((name) => [name, a[name] + sign * b[name]])) as unknown as KeyUsage;
}

export const isNothing = (usage: Readonly<KeyUsage>): boolean => NAMES.every((name) => usage[name] === 0);

/** Reads what was stored. Null: it is none. */
export function readUsage(value: unknown): KeyUsage | null {
  const found = (value ?? {}) as Readonly<Record<string, unknown>>;
  const isCount = (name: string) => Number.isSafeInteger(found[name]) && (found[name] as number) >= 0;
  if (!NAMES.every(isCount)) return null;
  return Object.fromEntries(NAMES.map((name) => [name, found[name]])) as unknown as KeyUsage;
}
