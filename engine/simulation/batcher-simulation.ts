import type { BatcherConfig, QueuedRequest } from '../../scheduler/tensors/dynamic-batcher.js';
import { DynamicBatcher } from '../../scheduler/tensors/dynamic-batcher.js';

/** A request of a simulation of the dynamic batcher. */
export interface BatcherArrival extends QueuedRequest {
  /** Microseconds from the beginning at which it comes. */
  readonly atUs: number;
}

export interface BatcherSimulationInput {
  readonly batcher: BatcherConfig;
  /** Batches that are computed side by side, at least 1. */
  readonly instances: number;
  /** Microseconds that a batch takes: `batch` for itself, and `row` for each of its rows. */
  readonly computeUs: { readonly batch: number; readonly row: number };
  /** In order of their times, at least one. */
  readonly arrivals: readonly BatcherArrival[];
}

/** Points of a distribution, in the unit of the reported value. */
export interface Spread {
  mean: number;
  p50: number;
  p90: number;
  p99: number;
  max: number;
}

export interface BatcherSimulationResult {
  requests: number;
  answered: number;
  /** Found their queue full. */
  refused: number;
  /** Waited for too long. */
  expired: number;
  /** From the first arrival to the last answer or refusal. */
  seconds: number;
  requestsPerSecond: number;
  rowsPerSecond: number;
  batches: number;
  meanRows: number;
  /** Number of batches by their number of rows; ascending. */
  batchSizes: { rows: number; batches: number }[];
  /** Of the answered: from arrival to the beginning of their batch. */
  queueUs: Spread;
  /** Of the answered: from arrival to the end of their batch. */
  latencyUs: Spread;
  /** Share of the instances' time in which they computed. */
  busyShare: number;
}

/**
 * Runs the real dynamic batcher over requests for a model that takes a known time: how large its batches are, how long
 * requests wait, who is refused.
 *
 *   time goes from event to event:   an arrival, the end of a batch, the moment for which the batcher asked
 *   at each:  batches end, requests come, and every free instance is given what the batcher has for it
 *
 * A free instance is given its batch at once, and none before it is free; a server's instance has its next
 * batch ready, so that it never waits for the host: there, batches are formed one batch earlier.
 */
export function simulateBatcher(input: BatcherSimulationInput): BatcherSimulationResult {
  const run = new Run(input);
  while (run.step());
  return run.result();
}

class Run {
  readonly #input: BatcherSimulationInput;
  readonly #batcher: DynamicBatcher<BatcherArrival>;
  /** When each instance that computes has ended. */
  #busyUntil: number[] = [];
  #nowUs: number;
  #arrived = 0;
  #wakeUs: number | null = null;
  #refused = 0;
  #expired = 0;
  #rows = 0;
  #computedUs = 0;
  #lastUs = 0;
  readonly #sizes = new Map<number, number>();
  readonly #queueUs: number[] = [];
  readonly #latencyUs: number[] = [];

  constructor(input: BatcherSimulationInput) {
    this.#input = input;
    this.#batcher = new DynamicBatcher(input.batcher);
    this.#nowUs = input.arrivals[0]!.atUs;
  }

  /** One event. @returns false where nothing is to come */
  step(): boolean {
    const { arrivals } = this.#input;
    this.#busyUntil = this.#busyUntil.filter((until) => until > this.#nowUs);
    for (; arrivals[this.#arrived] && arrivals[this.#arrived]!.atUs <= this.#nowUs; this.#arrived++) {
      if (this.#batcher.add(arrivals[this.#arrived]!, this.#nowUs) !== null) this.#refused++;
    }
    this.#give();
    const nextUs = Math.min(
      arrivals[this.#arrived]?.atUs ?? Number.POSITIVE_INFINITY,
      this.#wakeUs ?? Number.POSITIVE_INFINITY,
      ...this.#busyUntil,
    );
    this.#lastUs = this.#nowUs;
    this.#nowUs = nextUs;
    return nextUs < Number.POSITIVE_INFINITY;
  }

  result(): BatcherSimulationResult {
    const { arrivals, instances } = this.#input;
    const us = this.#lastUs - arrivals[0]!.atUs;
    const seconds = us / 1e6;
    const answered = this.#queueUs.length;
    const sizes = [...this.#sizes].sort(([one], [other]) => one - other);
    const batches = sizes.reduce((sum, [, count]) => sum + count, 0);
    return {
      requests: arrivals.length,
      answered,
      refused: this.#refused,
      expired: this.#expired,
      seconds,
      requestsPerSecond: shareOf(answered, seconds),
      rowsPerSecond: shareOf(this.#rows, seconds),
      batches,
      meanRows: shareOf(this.#rows, batches),
      batchSizes: sizes.map(([rows, count]) => ({ rows, batches: count })),
      queueUs: spreadOf(this.#queueUs),
      latencyUs: spreadOf(this.#latencyUs),
      busyShare: shareOf(this.#computedUs, us * instances),
    };
  }

  #give(): void {
    const { instances } = this.#input;
    for (;;) {
      const hasRoom = this.#busyUntil.length < instances;
      const { batch, rejected, wakeAtUs } = this.#batcher.next(this.#nowUs, { hasRoom });
      this.#expired += rejected.length;
      this.#wakeUs = wakeAtUs;
      if (batch === null) return;
      this.#run(batch);
    }
  }

  #run(batch: readonly BatcherArrival[]): void {
    const { computeUs } = this.#input;
    const rows = batch.reduce((sum, request) => sum + request.rows, 0);
    const takesUs = computeUs.batch + computeUs.row * rows;
    for (const { atUs } of batch) {
      this.#queueUs.push(this.#nowUs - atUs);
      this.#latencyUs.push(this.#nowUs - atUs + takesUs);
    }
    this.#rows += rows;
    this.#computedUs += takesUs;
    this.#sizes.set(rows, (this.#sizes.get(rows) ?? 0) + 1);
    this.#busyUntil.push(this.#nowUs + takesUs);
  }
}

function shareOf(part: number, whole: number): number {
  return whole > 0 ? part / whole : 0;
}

function spreadOf(values: readonly number[]): Spread {
  const sorted = Float64Array.from(values).sort();
  const at = (share: number) => sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? 0;
  const mean = shareOf(
    sorted.reduce((sum, value) => sum + value, 0),
    sorted.length,
  );
  return { mean, p50: at(0.5), p90: at(0.9), p99: at(0.99), max: at(1) };
}
