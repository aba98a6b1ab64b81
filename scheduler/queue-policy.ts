/** What becomes of requests that wait in one priority level. Source: Triton's ModelQueuePolicy. */
export interface QueuePolicy {
  /** reject: a request whose time is over is refused. delay: it goes behind all others of its level. */
  timeoutAction: 'reject' | 'delay';
  /** Microseconds that a request may wait; 0: any time. */
  defaultTimeoutUs: number;
  /** A request's own timeout counts where it is shorter than the default, or where there is no default. */
  allowTimeoutOverride: boolean;
  /** Requests that may wait; 0: any number. */
  maxQueueSize: number;
}

export const NO_QUEUE_POLICY: QueuePolicy = {
  timeoutAction: 'reject',
  defaultTimeoutUs: 0,
  allowTimeoutOverride: false,
  maxQueueSize: 0,
};

/** When a request that came now is over time; Infinity: never. @param ownUs its own timeout; 0: it has none */
export function deadlineOf(
  { defaultTimeoutUs, allowTimeoutOverride }: QueuePolicy,
  ownUs: number,
  nowUs: number,
): number {
  const own = allowTimeoutOverride ? ownUs : 0;
  const timeout = own > 0 && (defaultTimeoutUs === 0 || own < defaultTimeoutUs) ? own : defaultTimeoutUs;
  return timeout === 0 ? Number.POSITIVE_INFINITY : nowUs + timeout;
}
