import {
  type SequenceBatch,
  SequenceBatcher,
  type SequenceBatcherConfig,
} from '../../scheduler/tensors/sequence-batcher.js';
import type { SequenceRequest } from '../../scheduler/tensors/sequences/sequence-line.js';

/** A request of a history: its name is what tests compare. */
export interface NamedStep extends SequenceRequest {
  readonly name: string;
}

/**
 * A request as a test writes it: `A1` is the request 1 of sequence A; + is its START, - its END.
 * @param name such as 'A1+', 'A2', 'A3-', 'B1+-'
 */
export function step(
  name: string,
  more: Partial<Pick<SequenceRequest, 'timeoutUs' | 'fit'>> = {},
): NamedStep {
  const start = name.includes('+');
  const sequence = { key: name[0]!, start, end: name.includes('-') };
  return { name, sequence, timeoutUs: 0, fit: '', ...more };
}

/** Two slots for each of the instances, and no idle time; what a case is about is given. */
export function sequencing(
  strategy: SequenceBatcherConfig['strategy'] = direct(2),
  more: Partial<SequenceBatcherConfig> = {},
): SequenceBatcherConfig {
  return {
    instances: 1,
    slots: strategy.maxBatchSize,
    maxIdleUs: Number.POSITIVE_INFINITY,
    strategy,
    ...more,
  };
}

export const direct = (maxBatchSize: number, minimumUtilization = 0, maxDelayUs = 0) =>
  ({ kind: 'direct', maxBatchSize, minimumUtilization, maxDelayUs }) as const;

export const oldest = (maxBatchSize: number, preferred: readonly number[] = [], maxDelayUs = 0) =>
  ({ kind: 'oldest', maxBatchSize, preferred, maxDelayUs }) as const;

/** Rows of a batch in order, and - for an empty one. */
export function rowsText({ slots, rows }: SequenceBatch<NamedStep>): string {
  const texts = Array<string>(slots).fill('-');
  for (const { slot, request } of rows) texts[slot] = request.name;
  return texts.join(' ');
}

/** What comes: a name, or a request, and when in milliseconds. */
export type SequenceArrival = readonly [atMs: number, ...names: (string | NamedStep)[]];

export interface TimelineOptions {
  /** Milliseconds that an instance takes over a batch; default 1. */
  computeMs?: number;
  /** No instance is free before. */
  fromMs?: number;
  /** When the client that sent a request leaves, by the request's name. */
  leaves?: Readonly<Record<string, number>>;
  /** When an instance is lost; it runs again 10 ms later. */
  lost?: readonly (readonly [atMs: number, instance: number])[];
}

/**
 * What happens to the arrivals, with every call at the very moment for which the batcher asks:
 *
 *   5 #1 A1+ -      instance 1 runs a batch: A1 in slot 0, slot 1 empty
 *   5 B1 expired    refused where it waited; 'notStarted' and 'lost' where it came
 *   9 #0 end 3      the instance may forget the state of the third sequence
 */
export function sequenceTimeline(
  config: SequenceBatcherConfig,
  arrivals: readonly SequenceArrival[],
  options: TimelineOptions = {},
): string[] {
  const timeline = new SequenceTimeline(config, arrivals, options);
  while (timeline.step());
  return timeline.lines;
}

class SequenceTimeline {
  readonly lines: string[] = [];
  readonly #batcher: SequenceBatcher<NamedStep>;
  readonly #arrivals: readonly SequenceArrival[];
  readonly #options: Required<TimelineOptions>;
  readonly #requests = new Map<string, NamedStep>();
  readonly #running = new Map<number, { batch: SequenceBatch<NamedStep>; doneMs: number }>();
  /** Instances that are lost, and when they run again. */
  readonly #down = new Map<number, number>();
  readonly #instances: readonly number[];
  #nowMs = 0;

  constructor(
    config: SequenceBatcherConfig,
    arrivals: readonly SequenceArrival[],
    { computeMs = 1, fromMs = 0, leaves = {}, lost = [] }: TimelineOptions,
  ) {
    this.#batcher = new SequenceBatcher(config);
    this.#arrivals = arrivals;
    this.#options = { computeMs, fromMs, leaves, lost };
    this.#instances = Array.from({ length: config.instances }, (_, i) => i);
    for (const i of this.#instances) this.#batcher.noteInstance(i, true, 0);
  }

  /** Does what is due now and goes to the next moment. False: there is none. */
  step(): boolean {
    const us = 1000 * this.#nowMs;
    for (const [i, { batch, doneMs }] of this.#running) {
      if (doneMs > this.#nowMs) continue;
      this.#running.delete(i);
      this.#batcher.settle(batch, us);
    }
    this.#loseSome(us);
    for (const [atMs, ...names] of this.#arrivals) if (atMs === this.#nowMs) this.#arrive(names, us);
    for (const [name, atMs] of Object.entries(this.#options.leaves)) {
      if (atMs === this.#nowMs) this.#batcher.remove(this.#requests.get(name)!, us);
    }
    const wakeMs = this.#run(us);
    const { leaves, lost, fromMs } = this.#options;
    const times = [
      ...this.#arrivals.map(([atMs]) => atMs),
      ...Object.values(leaves),
      ...lost.map(([atMs]) => atMs),
      ...[...this.#running.values()].map(({ doneMs }) => doneMs),
      ...this.#down.values(),
      fromMs,
      wakeMs,
    ].filter((time) => time > this.#nowMs);
    this.#nowMs = Math.min(...times);
    return times.length > 0;
  }

  #arrive(names: readonly (string | NamedStep)[], us: number): void {
    for (const one of names) {
      const request = typeof one === 'string' ? step(one) : one;
      this.#requests.set(request.name, request);
      const refusal = this.#batcher.add(request, us);
      if (refusal !== null) this.lines.push(`${this.#nowMs} ${request.name} ${refusal}`);
    }
  }

  #loseSome(us: number): void {
    for (const [i, upMs] of this.#down) {
      if (upMs !== this.#nowMs) continue;
      this.#down.delete(i);
      this.#batcher.noteInstance(i, true, us);
    }
    for (const [atMs, i] of this.#options.lost) {
      if (atMs !== this.#nowMs) continue;
      const had = this.#running.get(i);
      this.#running.delete(i);
      if (had !== undefined) this.#batcher.settle(had.batch, us);
      this.#batcher.noteInstance(i, false, us);
      this.#down.set(i, this.#nowMs + 10);
    }
  }

  /** Gives batches to all instances that are free. @returns when the batcher wants to be asked again */
  #run(us: number): number {
    const { computeMs, fromMs } = this.#options;
    for (;;) {
      const free = this.#instances.filter((i) => !this.#running.has(i) && !this.#down.has(i));
      const { batch, refused, ended, wakeAtUs } = this.#batcher.next(us, this.#nowMs < fromMs ? [] : free);
      for (const { instance, sequence } of ended)
        this.lines.push(`${this.#nowMs} #${instance} end ${sequence}`);
      for (const { request, reason } of refused) this.lines.push(`${this.#nowMs} ${request.name} ${reason}`);
      if (batch === null) return wakeAtUs === null ? -1 : wakeAtUs / 1000;
      this.lines.push(`${this.#nowMs} #${batch.instance} ${rowsText(batch)}`);
      this.#running.set(batch.instance, { batch, doneMs: this.#nowMs + computeMs });
    }
  }
}
