import { FadingTimes } from './fading-times.js';

/** Times that nine of ten requests, or tokens, should stay below, in milliseconds; absent: that time does not count. */
export interface Targets {
  firstTokenMs?: number | undefined;
  betweenTokensMs?: number | undefined;
}

/** How a model is now. */
export interface Load {
  /** Workers that take requests. */
  workers: number;
  /** Requests with a worker, and those that wait for one. */
  running: number;
  waiting: number;
  /** Milliseconds that requests without a first token have waited for it. */
  ages: readonly number[];
}

/** Share of the times that has to meet a target. */
const SHARE = 0.9;
const HALF_LIFE_MS = 60_000;
/** Workers are too many where the times are below this share of their targets: nearer to them the number stays. */
const CALM = 0.7;
/** Factors by which the number of workers changes at most. */
const MAX_DOWN = 0.5;
const MAX_UP = 2;
/** Weight of times below which they say nothing: one of more than three minutes ago. */
const LEAST_WEIGHT = 0.1;

/**
 * How many workers a model should have, by the times that its clients saw against targets: as many times those that it has as the
 * ninth decile is of its target, the worse of the two times. What is right for a while stays right while new workers
 * start, since it is a number of workers and no change of it.
 */
export class DesiredWorkers {
  readonly #targets: Targets;
  readonly #first = new FadingTimes(HALF_LIFE_MS);
  readonly #between = new FadingTimes(HALF_LIFE_MS);

  constructor(targets: Targets) {
    this.#targets = targets;
  }

  noteFirst(ms: number, nowMs: number): void {
    this.#first.add(ms, nowMs);
  }

  /** @param count tokens that came at this distance */
  noteBetween(ms: number, nowMs: number, count = 1): void {
    this.#between.add(ms, nowMs, count);
  }

  /** Ninth deciles over their targets, of those that have one and any times. */
  ratios(ages: readonly number[], nowMs: number): { firstToken?: number; betweenTokens?: number } {
    const { firstTokenMs, betweenTokensMs } = this.#targets;
    const known = (times: FadingTimes) => times.weight(nowMs) >= LEAST_WEIGHT;
    // One that still waits would take longer: it counts where it has waited too long already.
    const late = ages.filter((age) => firstTokenMs !== undefined && age > firstTokenMs);
    return {
      ...(firstTokenMs !== undefined && (known(this.#first) || late.length > 0)
        ? { firstToken: this.#first.quantile(SHARE, nowMs, late) / firstTokenMs }
        : {}),
      ...(betweenTokensMs !== undefined && known(this.#between)
        ? { betweenTokens: this.#between.quantile(SHARE, nowMs) / betweenTokensMs }
        : {}),
    };
  }

  /** 0: no requests for a while. */
  desired({ workers, running, waiting, ages }: Load, nowMs: number): number {
    const ratios = Object.values(this.ratios(ages, nowMs));
    const isIdle = running + waiting === 0;
    if (workers === 0) return waiting > 0 ? 1 : 0;
    if (ratios.length === 0) return isIdle ? 0 : workers;
    return Math.max(1, Math.ceil(workers * factorOf(Math.max(...ratios)) - 1e-9));
  }
}

/** Never smaller for a greater ratio. */
function factorOf(ratio: number): number {
  if (ratio > 1) return Math.min(MAX_UP, ratio);
  return Math.max(MAX_DOWN, Math.min(1, ratio / CALM));
}
