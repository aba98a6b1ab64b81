import type { LimitState } from './key-limits.js';

/** Least of what is left to a key, by what is counted; null: it has no such limit. */
export type LeftToKey = Readonly<Record<'requests' | 'tokens', LimitState | null>>;

const UNITS = ['requests', 'tokens'] as const;

/** What is left to a key, in the headers that OpenAI's clients know. Source: OpenAI's guide to rate limits, "Rate limits in headers". */
export function openAiHeaders(left: LeftToKey): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const unit of UNITS) {
    const state = left[unit];
    if (state === null) continue;
    headers[`x-ratelimit-limit-${unit}`] = String(state.limit);
    headers[`x-ratelimit-remaining-${unit}`] = String(state.remaining);
    headers[`x-ratelimit-reset-${unit}`] = durationText(state.resetMs);
  }
  return headers;
}

/** The same as Anthropic's clients know it: times are those of the day. Source: Anthropic's API, "Rate limits", response headers. */
export function anthropicHeaders(left: LeftToKey, nowMs: number): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const unit of UNITS) {
    const state = left[unit];
    if (state === null) continue;
    headers[`anthropic-ratelimit-${unit}-limit`] = String(state.limit);
    headers[`anthropic-ratelimit-${unit}-remaining`] = String(state.remaining);
    const reset = new Date(1000 * Math.ceil((nowMs + state.resetMs) / 1000)).toISOString();
    headers[`anthropic-ratelimit-${unit}-reset`] = reset.replace('.000Z', 'Z');
  }
  return headers;
}

/** A time as Go writes it: 450ms, 12s, 6m0s, 3h0m5s. */
export function durationText(ms: number): string {
  if (ms < 1000) return `${Math.ceil(ms)}ms`;
  const seconds = Math.ceil(ms / 1000);
  const [h, m, s] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60];
  if (h > 0) return `${h}h${m}m${s}s`;
  return m > 0 ? `${m}m${s}s` : `${s}s`;
}
