import type { ArrivalOptions } from '../arrivals/arrivals.js';
import { type ScheduleBounds, schedule } from '../arrivals/schedule.js';
import { monotonicMs } from '../clock.js';
import { RunMetrics } from '../metrics/run-metrics.js';
import type { Slo } from '../metrics/slo.js';
import { RECORD_LENGTH, RecordList, recordOf } from '../records.js';
import type { Dataset } from '../samples.js';
import type { ClientHealth, FromWorker, ResultFrame, ToWorker } from '../worker/frames.js';
import { Dealer } from './dealer.js';
import { Timeline } from './timeline.js';

/** Milliseconds by which requests are sent to workers ahead of their time. */
const LOOKAHEAD_MS = 2000;
/** Milliseconds between the beginning of a run and its zero, in which the first frames arrive. */
const LEAD_MS = 50;
const TICK_MS = 50;
/** Least number of samples that a worker of a closed loop has beyond its slots. */
const BACKLOG = 64;
/** Milliseconds that workers are waited for once everything has been cancelled. */
const CANCEL_MS = 5000;

export interface RunPlan {
  arrivals: ArrivalOptions;
  traceTimes: readonly number[];
  dataset: Dataset;
  seed: number;
  /** Limits of the schedule; for a run of a number of requests, that number is planned. */
  bounds: ScheduleBounds;
  /** Milliseconds from the start after which the run is cut off. */
  maxDurationMs: number;
  slo: Slo | null;
  /** Signal whose abort cuts the run off. */
  signal: AbortSignal;
}

/** The part of a worker that a run uses. */
export interface RunWorker {
  onFrame: (frame: FromWorker) => void;
  send(frame: ToWorker): void;
  readonly failed: Promise<never>;
}

/** State of a run in progress, for display. */
export interface Progress {
  elapsedMs: number;
  dealt: number;
  settled: number;
  inFlight: number;
  waiting: number;
  metrics: RunMetrics;
  timeline: Timeline;
}

export interface RunResult {
  metrics: RunMetrics;
  records: RecordList;
  timeline: Timeline;
  startMs: number;
  endMs: number;
  /** Number of requests planned; null where time limits the run. */
  planned: number | null;
  /** Why the run was cut off; null for a complete one. */
  cutOff: string | null;
  messages: { request: number; message: string }[];
  /** Health of each worker, second by second. */
  health: ClientHealth[][];
  /** Most requests that waited for a slot in the client at the same time. */
  mostWaiting: number;
  /** Number of samples dealt to each worker. */
  dealt: number[];
}

/** One run: deals the schedule to the workers and gathers their reports, until every request has its outcome. */
export class LoadRun {
  readonly #workers: readonly RunWorker[];
  readonly #plan: RunPlan;
  readonly #metrics: RunMetrics;
  readonly #records = new RecordList(1024);
  readonly #timeline: Timeline;
  readonly #startMs: number;
  readonly #dealer: Dealer;
  readonly #messages: { request: number; message: string }[] = [];
  readonly #health: ClientHealth[][];
  readonly #load: { inFlight: number; waiting: number }[];
  /** Number of samples of each worker that have come back (their first turns). */
  readonly #settledSamples: number[];
  #settled = 0;
  #withdrawn = 0;
  /** Number of outstanding answers of workers to stop and flush frames. */
  #awaited = 0;
  #mostWaiting = 0;
  #phase: 'deal' | 'drain' | 'cancel' | 'flush' = 'deal';
  #cutOff: string | null = null;
  #undealt = 0;
  #giveUp: NodeJS.Timeout | null = null;
  #finish: () => void = () => {};

  constructor(workers: readonly RunWorker[], plan: RunPlan) {
    const { arrivals } = plan;
    // A worker without a slot would keep the samples that it is dealt.
    this.#workers = arrivals.kind === 'concurrency' ? workers.slice(0, arrivals.concurrency) : workers;
    this.#plan = plan;
    // Slots of a closed loop are filled at once; scheduled times must be ahead.
    this.#startMs = monotonicMs() + (arrivals.kind === 'concurrency' ? 0 : LEAD_MS);
    this.#metrics = new RunMetrics(plan.slo);
    this.#timeline = new Timeline(this.#startMs);
    this.#dealer = new Dealer(
      schedule(plan.arrivals, plan.dataset, plan.seed, plan.bounds, plan.traceTimes),
      this.#workers.length,
      this.#startMs,
      plan.dataset.size,
    );
    this.#health = this.#workers.map(() => []);
    this.#load = this.#workers.map(() => ({ inFlight: 0, waiting: 0 }));
    this.#settledSamples = this.#workers.map(() => 0);
  }

  /** Runs to the end. @throws Error where a worker process dies. */
  async run(): Promise<RunResult> {
    const { arrivals } = this.#plan;
    const share = (i: number) =>
      arrivals.kind === 'concurrency' ? Math.floor((arrivals.concurrency + i) / this.#workers.length) : null;
    for (const [i, worker] of this.#workers.entries()) {
      worker.onFrame = (frame) => this.#onFrame(i, frame);
      worker.send({ type: 'begin', startMs: this.#startMs, concurrency: share(i) });
    }
    const finished = new Promise<void>((resolve) => {
      this.#finish = resolve;
    });
    const timer = setInterval(() => this.#tick(), TICK_MS);
    this.#tick();
    const dead = this.#workers.map(({ failed }) => failed);
    try {
      await Promise.race([finished, ...dead]);
    } finally {
      clearInterval(timer);
      if (this.#giveUp !== null) clearTimeout(this.#giveUp);
      for (const worker of this.#workers) worker.onFrame = () => {};
    }
    return this.#result();
  }

  progress(): Progress {
    return {
      elapsedMs: Math.max(0, monotonicMs() - this.#startMs),
      dealt: this.#dealer.requests,
      settled: this.#settled,
      inFlight: this.#load.reduce((sum, { inFlight }) => sum + inFlight, 0),
      waiting: this.#load.reduce((sum, { waiting }) => sum + waiting, 0),
      metrics: this.#metrics,
      timeline: this.#timeline,
    };
  }

  #tick(): void {
    const { arrivals, bounds, maxDurationMs, signal } = this.#plan;
    const elapsedMs = monotonicMs() - this.#startMs;
    if (signal.aborted)
      this.#stop('cancel', signal.reason instanceof Error ? signal.reason.message : 'interrupted');
    else if (elapsedMs >= maxDurationMs) this.#stop('cancel', `longer than ${maxDurationMs / 1000} s`);
    else if (arrivals.kind === 'concurrency' && elapsedMs >= bounds.durationMs) this.#stop('drain', null);
    if (this.#phase === 'deal') {
      if (arrivals.kind === 'concurrency') this.#dealToSlots(arrivals.concurrency);
      else this.#dealer.dealUntil(elapsedMs + LOOKAHEAD_MS);
      for (const [i, frame] of this.#dealer.takeFrames().entries()) {
        if (frame !== null) this.#workers[i]!.send(frame);
      }
    }
    this.#finishIfDone();
  }

  /** Deals each worker enough samples for the time until the next tick, at the pace so far. */
  #dealToSlots(concurrency: number): void {
    const elapsedMs = Math.max(TICK_MS, monotonicMs() - this.#startMs);
    const perTick = (4 * TICK_MS * Math.max(...this.#settledSamples)) / elapsedMs;
    const wanted = (2 * concurrency) / this.#workers.length + BACKLOG + perTick;
    const backlogs = this.#dealer.samples.map((dealt, i) => dealt - this.#settledSamples[i]!);
    const missing = Math.ceil(wanted - Math.min(...backlogs));
    if (missing > 0) this.#dealer.dealRounds(missing);
  }

  #stop(how: 'drain' | 'cancel', reason: string | null): void {
    if (this.#phase === how || this.#phase === 'cancel' || this.#phase === 'flush') return;
    const isFirst = this.#phase === 'deal';
    this.#phase = how;
    this.#cutOff = reason;
    const isBounded = Number.isFinite(this.#plan.bounds.requests);
    const isClosed = this.#plan.arrivals.kind === 'concurrency';
    // A closed loop limited by time has no requests beyond those begun.
    const withdraw = isClosed && (how === 'drain' || !isBounded);
    if (isFirst && !withdraw) this.#undealt = this.#dealer.skipRest();
    this.#awaited += this.#workers.length;
    this.#sendAll({ type: 'stop', withdraw, cancel: how === 'cancel' });
    if (how === 'cancel') this.#giveUp = setTimeout(() => this.#finish(), CANCEL_MS);
  }

  #onFrame(worker: number, frame: FromWorker): void {
    if (frame.type === 'health') this.#health[worker]!.push(frame.health);
    else if (frame.type === 'stopped') {
      this.#withdrawn += frame.withdrawn;
      this.#awaited--;
    } else if (frame.type === 'flushed') {
      this.#awaited--;
    } else if (frame.type === 'results') {
      this.#take(worker, frame);
    }
    this.#finishIfDone();
  }

  #take(worker: number, frame: ResultFrame): void {
    for (let i = 0; i < frame.records.length / RECORD_LENGTH; i++) {
      const record = recordOf(frame.records, i);
      this.#metrics.add(record);
      this.#timeline.add(record);
      if (record.turn === 0) this.#settledSamples[worker]!++;
      this.#settled++;
    }
    this.#records.append(frame.records);
    if (frame.gaps !== null) this.#metrics.addGaps(frame.gaps);
    this.#timeline.addPieces(frame.bins);
    this.#messages.push(...frame.messages);
    this.#load[worker] = { inFlight: frame.inFlight, waiting: frame.waiting };
    this.#mostWaiting = Math.max(this.#mostWaiting, frame.waiting);
  }

  #finishIfDone(): void {
    if (this.#awaited > 0 || (this.#phase === 'deal' && !this.#dealer.isExhausted)) return;
    if (this.#phase === 'flush') {
      this.#finish();
    } else if (this.#settled >= this.#dealer.requests - this.#withdrawn) {
      this.#phase = 'flush';
      this.#awaited = this.#workers.length;
      this.#sendAll({ type: 'flush' });
    }
  }

  #sendAll(frame: ToWorker): void {
    for (const worker of this.#workers) worker.send(frame);
  }

  #result(): RunResult {
    const { bounds } = this.#plan;
    const isPlanned = Number.isFinite(bounds.requests) && this.#withdrawn === 0;
    // Requests that workers did not account for in time count as cancelled, so that none is missing.
    const lost = this.#dealer.requests - this.#withdrawn - this.#settled;
    this.#metrics.outcomes.not_sent += this.#undealt;
    this.#metrics.outcomes.cancelled += lost;
    return {
      metrics: this.#metrics,
      records: this.#records,
      timeline: this.#timeline,
      startMs: this.#startMs,
      endMs: monotonicMs(),
      planned: isPlanned ? this.#dealer.requests + this.#undealt : null,
      cutOff: this.#cutOff,
      messages: this.#messages,
      health: this.#health,
      mostWaiting: this.#mostWaiting,
      dealt: [...this.#dealer.samples],
    };
  }
}
