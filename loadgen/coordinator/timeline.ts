import type { RequestRecord } from '../records.js';
import { BIN_MS } from '../worker/frames.js';

/** Number of bins above which neighbours are merged for the report. */
const MAX_BINS = 2400;

/** Counts over time, in bins of `binMs` from the start of the run. */
export interface TimelineReport {
  binMs: number;
  /** Number of requests sent in each bin; then of answers ended, and of failures. */
  sent: number[];
  completed: number[];
  failed: number[];
  /** Number of pieces with text, of streamed answers. */
  pieces: number[];
  /** Number of requests in flight at the end of the bin. */
  inFlight: number[];
}

const SERIES = ['sent', 'completed', 'failed', 'pieces'] as const;
type Series = (typeof SERIES)[number];

export class Timeline {
  readonly #startMs: number;
  readonly #bins: Record<Series, number[]> = { sent: [], completed: [], failed: [], pieces: [] };
  /** Requests sent less requests ended, for each bin. */
  readonly #change: number[] = [];

  constructor(startMs: number) {
    this.#startMs = startMs;
  }

  add(record: RequestRecord): void {
    if (Number.isNaN(record.sentMs)) return;
    this.#count('sent', record.sentMs);
    this.#count(record.outcome === 'completed' ? 'completed' : 'failed', record.endMs);
    this.#change[this.#bin(record.sentMs)] = (this.#change[this.#bin(record.sentMs)] ?? 0) + 1;
    this.#change[this.#bin(record.endMs)] = (this.#change[this.#bin(record.endMs)] ?? 0) - 1;
  }

  /** Adds counts of pieces. @param bins bins and counts in turn */
  addPieces(bins: Float64Array): void {
    const { pieces } = this.#bins;
    for (let i = 0; i < bins.length; i += 2) pieces[bins[i]!] = (pieces[bins[i]!] ?? 0) + bins[i + 1]!;
  }

  /** Latest bins of a series, for a growing plot; the bin being filled is left out. */
  recent(series: Series, count: number, elapsedMs: number): number[] {
    const end = Math.floor(elapsedMs / BIN_MS);
    const start = Math.max(0, end - count);
    return Array.from({ length: end - start }, (_, i) => this.#bins[series][start + i] ?? 0);
  }

  /** Sum of a series until a time of the monotonic clock, with the last bin in part. */
  sumUntil(series: Series, ms: number): number {
    const bins = (ms - this.#startMs) / BIN_MS;
    let sum = 0;
    for (const [bin, count] of this.#bins[series].entries()) {
      sum += (count ?? 0) * Math.min(1, Math.max(0, bins - bin));
    }
    return sum;
  }

  report(): TimelineReport {
    const length = Math.max(this.#change.length, ...SERIES.map((series) => this.#bins[series].length));
    let width = 1;
    while (length / width > MAX_BINS) width *= 2;
    const wide = (values: readonly number[]) => {
      const sums = new Array<number>(Math.ceil(length / width)).fill(0);
      for (let i = 0; i < length; i++) sums[Math.floor(i / width)]! += values[i] ?? 0;
      return sums;
    };
    let inFlight = 0;
    return {
      binMs: BIN_MS * width,
      sent: wide(this.#bins.sent),
      completed: wide(this.#bins.completed),
      failed: wide(this.#bins.failed),
      pieces: wide(this.#bins.pieces),
      inFlight: wide(this.#change).map((change) => {
        inFlight += change;
        return inFlight;
      }),
    };
  }

  #bin(ms: number): number {
    return Math.max(0, Math.floor((ms - this.#startMs) / BIN_MS));
  }

  #count(series: Series, ms: number): void {
    const bin = this.#bin(ms);
    this.#bins[series][bin] = (this.#bins[series][bin] ?? 0) + 1;
  }
}
