const UNITS_MS: Readonly<Record<string, number>> = {
  ns: 1e-6,
  us: 1e-3,
  µs: 1e-3,
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
};
const DURATION = /^(-?)((?:\d+(?:\.\d*)?|\.\d+)(?:ns|us|µs|ms|s|m|h))+$/;
const PART = /(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|ms|s|m|h)/g;
/** Longest time that is counted; a longer one is for ever. */
const LONGEST_MS = 10 * 365 * 24 * 3_600_000;

/** What a duration may be, for errors. */
export const KEEP_ALIVE_FORM = "a duration such as '5m' or '1h30m', or seconds; a negative one is for ever";

/**
 * Milliseconds of a duration as Go writes it, '5m' or '1h30m', or of a number of seconds; a negative one is
 * for ever: Infinity. Null: it is not a duration.
 */
export function keepAliveMs(value: string | number): number | null {
  const ms = typeof value === 'number' ? 1000 * value : msOf(value.trim());
  if (ms === null || Number.isNaN(ms)) return null;
  return ms < 0 || ms > LONGEST_MS ? Number.POSITIVE_INFINITY : ms;
}

function msOf(text: string): number | null {
  if (/^-?\d+(\.\d*)?$/.test(text)) return 1000 * Number(text);
  if (!DURATION.test(text)) return null;
  let ms = 0;
  for (const [, count, unit] of text.matchAll(PART)) ms += Number(count) * UNITS_MS[unit!]!;
  return text.startsWith('-') ? -ms : ms;
}
