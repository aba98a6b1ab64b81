import type { BeatReader } from './links/worker-link.js';

/** Number of looks within one time-out. The more, the sooner a stuck worker is noticed. */
const CHECKS = 8;

export interface WatchdogOptions {
  heartbeat: BeatReader;
  /** Milliseconds without a beat after which the worker counts as stuck. */
  timeoutMs: number;
  /** True while something waits for the worker, even one that sleeps: sleep is then no excuse. */
  isAwaited: () => boolean;
  /** Called once, when the worker counts as stuck. */
  onStuck: () => void;
}

/**
 * Notices a worker that has stopped iterating while something is active. The time-out counts looks, not the clock: a
 * process that was stopped, or whose host thread was busy for minutes, has looked only once in that time.
 */
export class Watchdog {
  readonly #options: WatchdogOptions;
  readonly #timer: NodeJS.Timeout;
  #seen: number;
  #checksWithoutBeat = 0;

  constructor(options: WatchdogOptions) {
    this.#options = options;
    this.#seen = options.heartbeat.beats;
    this.#timer = setInterval(() => this.check(), options.timeoutMs / CHECKS).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** Looks once; called by the timer. */
  check(): void {
    const { heartbeat, isAwaited, onStuck } = this.#options;
    const { beats } = heartbeat;
    if (beats !== this.#seen || (heartbeat.isAsleep && !isAwaited())) {
      this.#seen = beats;
      this.#checksWithoutBeat = 0;
      return;
    }
    if (++this.#checksWithoutBeat < CHECKS) return;
    this.stop();
    onStuck();
  }
}
