import type { TokenTiming } from '../../../callbacks/token-request.js';

/** Times of an answer in milliseconds from its beginning; null: it did not get there, or it is not known when. */
export interface TextPhases {
  /** It first ran: until then it waited. */
  scheduled: number | null;
  firstToken: number | null;
  lastToken: number | null;
}

/** What was seen of it here, where the engine reported nothing. */
export interface SeenTokens {
  firstToken: number | null;
  lastToken: number | null;
  ended: number;
}

/**
 * The engine's own times, where it reported them; else what was seen here. Its clock differs from this
 * thread's and may be ahead by microseconds: no phase ends after the answer, or begins after the next one.
 */
export function phasesOf(timing: TokenTiming | undefined, seen: SeenTokens): TextPhases {
  const lastToken = notBehind(seen.ended, timing?.lastTokenMs ?? seen.lastToken);
  const firstToken = notBehind(lastToken ?? seen.ended, timing?.firstTokenMs ?? seen.firstToken);
  const scheduled = notBehind(firstToken ?? seen.ended, timing?.firstScheduledMs ?? null);
  return { scheduled, firstToken, lastToken };
}

const notBehind = (limit: number, ms: number | null) => (ms === null ? null : Math.min(ms, limit));
