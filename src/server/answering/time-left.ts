import type { RequestTerms } from '../web/request-terms.js';
import type { CommonRequest } from './schemas/common.js';

/** A request and its terms for a pass, which has what is left of both limits. @param sinceMs time of performance.now() at which the first pass began */
export function withTimeLeft<Request extends Pick<CommonRequest, 'time_limit_ms'>>(
  request: Request,
  terms: RequestTerms,
  sinceMs: number,
): { request: Request; terms: RequestTerms } {
  const own = timeLeft(request.time_limit_ms ?? null, sinceMs) ?? undefined;
  return {
    request: { ...request, time_limit_ms: own },
    terms: { ...terms, timeLimitMs: timeLeft(terms.timeLimitMs, sinceMs) },
  };
}

/** Milliseconds that are left of a limit that began at a time of performance.now(); null: there is no limit. */
function timeLeft(limitMs: number | null, sinceMs: number): number | null {
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
