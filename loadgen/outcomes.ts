/** What may become of a request. Every request of a run has exactly one; the order gives the numbers in result frames. */
export const OUTCOMES = [
  /** Answered to its end. */
  'completed',
  /** Answered to its end, without a single token or event. */
  'empty',
  /** 429, and no attempt was left. */
  'rate_limited',
  /** Another status than 2xx. */
  'http_error',
  /** An error that the server sent as an event of a stream, or in a body with status 200. */
  'stream_error',
  /** What was sent is no HTTP, no event stream, or no JSON where there must be. */
  'malformed',
  /** HTTP ended well, but the answer has no end: half a frame, or neither finish reason nor [DONE]. */
  'truncated',
  /** No connection: refused, unknown host, no answer. */
  'connect_failed',
  /** The connection ended before the answer did. */
  'connection_reset',
  /** No byte for the stall limit. */
  'stalled',
  /** Not done within the request's time limit. */
  'timed_out',
  /** The client's own limits, such as file descriptors or ports; the server never heard of it. */
  'client_limit',
  /** Under way when the run was cut off. */
  'cancelled',
  /** The time to send it never came, because the run was cut off or an earlier turn of its conversation failed. */
  'not_sent',
] as const;

export type Outcome = (typeof OUTCOMES)[number];

export const OUTCOME_NUMBERS: Readonly<Record<Outcome, number>> = Object.fromEntries(
  OUTCOMES.map((outcome, number) => [outcome, number]),
) as Record<Outcome, number>;

/** The server's answer counts as one: latencies and tokens are of these. */
export function isAnswered(outcome: Outcome): boolean {
  return outcome === 'completed';
}
