import { option } from '../base/named-text.js';
import { checkRange, ParameterError } from './sampling-params.js';

/** Waits and limits for starting another worker after the engine's worker died. */
export interface WorkerRestartOptions {
  /** Wait before the first restart; default 250. */
  delayMs?: number;
  /** Each further restart waits this many times as long as the one before; default 2. */
  factor?: number;
  /** Longest wait before a restart; default 30 000. */
  maxDelayMs?: number;
  /**
   * Milliseconds that a worker must have run since it was ready to count as sound: the waits then start over.
   * Default 60 000.
   */
  stableMs?: number;
  /** Restarts in a row whose worker may die before it is ready, after which the manager gives up. Default 5. */
  maxFailedStarts?: number;
}

const DEFAULT_WORKER_RESTART: Readonly<Required<WorkerRestartOptions>> = {
  delayMs: 250,
  factor: 2,
  maxDelayMs: 30_000,
  stableMs: 60_000,
  maxFailedStarts: 5,
};

/** Throws a ParameterError naming field, value and limit. */
export function checkWorkerRestart(options: WorkerRestartOptions | false | undefined): void {
  if (options === undefined || options === false) return;
  if (typeof options !== 'object' || options === null) {
    throw new ParameterError(
      'workerRestart',
      `workerRestart is ${String(options)}; it must be false or an object of options.`,
    );
  }
  const day = 86_400_000;
  const ranges = {
    delayMs: { min: 0, max: day, integer: true },
    factor: { min: 1, max: 100, integer: false },
    maxDelayMs: { min: 0, max: day, integer: true },
    stableMs: { min: 0, max: 30 * day, integer: true },
    maxFailedStarts: { min: 1, max: 1_000_000, integer: true },
  };
  for (const [name, range] of Object.entries(ranges)) {
    const value = options[name as keyof typeof ranges];
    if (value !== undefined) checkRange(option(`workerRestart.${name}`), value, range);
  }
}

/**
 * Decides when to start the next worker: a pure state machine, whose input is how each worker fared.
 *
 *   death while it ran      wait delayMs x factor^n, n = restarts since the last sound worker, at most maxDelayMs
 *   death before ready      the same, and after maxFailedStarts of these in a row: never again
 *
 * A worker that dies again and again while it runs is restarted for ever: otherwise one client that repeats a deadly
 * request could end the service for all.
 */
export class RestartPolicy {
  readonly #options: Readonly<Required<WorkerRestartOptions>>;
  #restarts = 0;
  #failedStarts = 0;

  constructor(options: WorkerRestartOptions = {}) {
    this.#options = { ...DEFAULT_WORKER_RESTART, ...options };
  }

  /** Restarts in a row whose worker died before it was ready. */
  get failedStarts(): number {
    return this.#failedStarts;
  }

  /**
   * Returns the milliseconds to wait after a death; null to give up.
   * @param ranMs time since the worker was ready; null where it never was.
   */
  next(ranMs: number | null): number | null {
    const { delayMs, factor, maxDelayMs, stableMs, maxFailedStarts } = this.#options;
    this.#failedStarts = ranMs === null ? this.#failedStarts + 1 : 0;
    if (this.#failedStarts >= maxFailedStarts) return null;
    if (ranMs !== null && ranMs >= stableMs) this.#restarts = 0;
    return Math.min(maxDelayMs, delayMs * factor ** this.#restarts++);
  }
}
