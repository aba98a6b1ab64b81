/** What becomes of requests that wait on one priority level. Source: `ModelQueuePolicy` of Triton's model configuration. */
export interface QueuePolicy {
  /**
   * REJECT: an expired request is refused. DELAY: it moves to the end of its level and never expires again.
   */
  readonly timeoutAction: 'REJECT' | 'DELAY';
  /** Microseconds after which a request has expired; 0: never. */
  readonly timeoutUs: number;
  /** A request's own timeout counts where it is shorter. */
  readonly allowTimeoutOverride: boolean;
  /** Requests of the level that wait; 0: any number. */
  readonly maxQueueSize: number;
}

/** Everything waits for as long as it takes. */
export const PATIENT: QueuePolicy = {
  timeoutAction: 'REJECT',
  timeoutUs: 0,
  allowTimeoutOverride: false,
  maxQueueSize: 0,
};

/** Priority levels of a queue, and the policy of each. */
export interface QueueLevels {
  /** Levels are 1, the highest, to this number; 0: there is one level, and priorities mean nothing. */
  readonly count: number;
  /** Of a request that names no level, or one that there is not. */
  readonly default: number;
  readonly defaultPolicy: QueuePolicy;
  /** Policies of single levels; all others have the default policy. */
  readonly policies: ReadonlyMap<number, QueuePolicy>;
}

export const ONE_LEVEL: QueueLevels = {
  count: 0,
  default: 0,
  defaultPolicy: PATIENT,
  policies: new Map(),
};

/** The level on which a request waits. @param priority 1 is the highest; 0: the default */
export function levelOf(levels: QueueLevels, priority: number): number {
  if (levels.count === 0) return 0;
  return priority >= 1 && priority <= levels.count ? priority : levels.default;
}

export function policyOf(levels: QueueLevels, level: number): QueuePolicy {
  return levels.policies.get(level) ?? levels.defaultPolicy;
}

/**
 * When a request has expired that begins to wait now; Infinity: never. An override shortens the timeout of its level and never
 * lengthens it. Where the level has none, any is shorter: Triton ignores the request's own there, and so a wish that its
 * configuration allows.
 * @param timeoutUs the request's own; 0: it has none
 */
export function deadlineOf(policy: QueuePolicy, timeoutUs: number, nowUs: number): number {
  const ofLevel = policy.timeoutUs > 0 ? policy.timeoutUs : Number.POSITIVE_INFINITY;
  const own = policy.allowTimeoutOverride && timeoutUs > 0 ? timeoutUs : Number.POSITIVE_INFINITY;
  return nowUs + Math.min(ofLevel, own);
}
