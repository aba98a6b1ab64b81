import type { RequestTerms } from '../web/request-terms.js';
import type { CommonRequest } from './schemas/common.js';

/** Milliseconds that are left of a limit that began at a time of performance.now(); null: there is no limit. */
export function timeLeft(limitMs: number | null, sinceMs: number): number | null {
  return limitMs === null ? null : Math.max(1, Math.ceil(limitMs - (performance.now() - sinceMs)));
}

/** Milliseconds that all passes of an answer may take, of the server's limit and of the request's; null: there is none. */
export function timeLimitOf(
  { time_limit_ms: own }: Pick<CommonRequest, 'time_limit_ms'>,
  { timeLimitMs }: Pick<RequestTerms, 'timeLimitMs'>,
): number | null {
  const both = [own ?? null, timeLimitMs].filter((limit) => limit !== null);
  return both.length === 0 ? null : Math.min(...both);
}
