/** Outcomes of requests. Every request of a run has exactly one; the order gives the numbers in result frames. */
export const OUTCOMES = [
  /** Complete answer. */
  'completed',
  /** Complete answer without a single token or event. */
  'empty',
  /** Status 429, with no attempt left. */
  'rate_limited',
  /** Status other than 2xx. */
  'http_error',
  /** An error that the server sent as an event of a stream, or in a body with status 200. */
  'stream_error',
  /** Data that is no HTTP, no event stream, or no JSON where there must be. */
  'malformed',
  /** HTTP ended well, but the answer has no end: half a frame, or neither finish reason nor [DONE]. */
  'truncated',
  /** No connection: refused, unknown host, no answer. */
  'connect_failed',
  /** The connection ended before the answer did. */
  'connection_reset',
  /** No byte within the stall limit. */
  'stalled',
  /** Not finished within the request's time limit. */
  'timed_out',
  /** A limit of the client, such as file descriptors or ports; the request never reached the server. */
  'client_limit',
  /** In progress when the run was cut off. */
  'cancelled',
  /** Never sent, because the run was cut off or an earlier turn of its conversation failed. */
  'not_sent',
] as const;

export type Outcome = (typeof OUTCOMES)[number];

export const OUTCOME_NUMBERS: Readonly<Record<Outcome, number>> = Object.fromEntries(
  OUTCOMES.map((outcome, number) => [outcome, number]),
) as Record<Outcome, number>;
