import { monotonicMs } from '../clock.js';
import { LatencyHistogram } from '../metrics/latency-histogram.js';
import type { Outcome } from '../outcomes.js';
import { RecordList, type RequestRecord } from '../records.js';
import { BIN_MS, type ResultFrame } from './frames.js';

/** Most milliseconds that results wait to share a frame with others. */
const FLUSH_MS = 50;
/** Most results that wait to share a frame. */
const FLUSH_RECORDS = 2048;
/** Least milliseconds between frames with first pieces: making and sending one costs some 0.05 ms. */
const FIRSTS_MS = 5;
/** Milliseconds between frames with gaps between pieces: encoding a histogram costs some 0.1 ms. */
const GAPS_MS = 1000;
/** Most messages sent for each outcome; they repeat themselves. */
const MESSAGES = 5;

/** Gathers a worker's results and sends them in frames: the first piece of a stream at once, all others batched. */
export class Results {
  readonly #send: (frame: ResultFrame) => void;
  readonly #load: () => { inFlight: number; waiting: number };
  readonly #records = new RecordList(FLUSH_RECORDS);
  #firsts: number[] = [];
  readonly #bins = new Map<number, number>();
  #bin = -1;
  #binCount = 0;
  readonly #gaps = new LatencyHistogram();
  #gapsSentMs = 0;
  #messages: ResultFrame['messages'] = [];
  readonly #told = new Map<Outcome, number>();
  #startMs = 0;
  #timer: NodeJS.Timeout | null = null;
  /** Timer for reporting first pieces of answers. */
  #soonTimer: NodeJS.Timeout | null = null;
  #soon: NodeJS.Immediate | null = null;
  #flushedMs = 0;

  constructor(send: (frame: ResultFrame) => void, load: () => { inFlight: number; waiting: number }) {
    this.#send = send;
    this.#load = load;
  }

  begin(startMs: number): void {
    this.#startMs = startMs;
    this.#told.clear();
  }

  /**
   * Reports that a stream has begun: at once, unless a frame was sent a moment ago, in which case the next one is near.
   */
  first(request: number, ms: number, nowMs: number): void {
    this.#firsts.push(request, ms);
    if (this.#soon !== null || this.#soonTimer !== null) return;
    const wait = this.#flushedMs + FIRSTS_MS - nowMs;
    if (wait <= 0) this.#soon = setImmediate(() => this.flush());
    else this.#soonTimer = setTimeout(() => this.flush(), wait);
  }

  pieces(count: number, nowMs: number, gapMs: number): void {
    const bin = Math.max(0, Math.floor((nowMs - this.#startMs) / BIN_MS));
    if (bin !== this.#bin) this.#closeBin(bin);
    this.#binCount += count;
    if (!Number.isNaN(gapMs)) this.#gaps.record(gapMs);
    if (count > 1) this.#gaps.record(0, count - 1);
    this.#timer ??= setTimeout(() => this.flush(), FLUSH_MS);
  }

  record(record: RequestRecord, message: string): void {
    this.#records.push(record);
    if (message !== '') {
      const told = this.#told.get(record.outcome) ?? 0;
      this.#told.set(record.outcome, told + 1);
      if (told < MESSAGES) this.#messages.push({ request: record.request, message });
    }
    if (this.#records.length >= FLUSH_RECORDS) this.flush();
    else this.#timer ??= setTimeout(() => this.flush(), FLUSH_MS);
  }

  /** Sends all results; with `all` also the gaps, whenever the last ones were sent. */
  flush(all = false): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    if (this.#soonTimer !== null) clearTimeout(this.#soonTimer);
    if (this.#soon !== null) clearImmediate(this.#soon);
    this.#timer = null;
    this.#soonTimer = null;
    this.#soon = null;
    this.#closeBin(-1);
    const now = monotonicMs();
    this.#flushedMs = now;
    const sendsGaps = this.#gaps.count > 0 && (all || now - this.#gapsSentMs > GAPS_MS);
    if (sendsGaps) this.#gapsSentMs = now;
    this.#send({
      type: 'results',
      records: this.#records.take(),
      firsts: Float64Array.from(this.#firsts),
      bins: Float64Array.from([...this.#bins].flat()),
      gaps: sendsGaps ? this.#gaps.take() : null,
      messages: this.#messages,
      ...this.#load(),
    });
    this.#firsts = [];
    this.#bins.clear();
    this.#messages = [];
  }

  #closeBin(next: number): void {
    if (this.#binCount > 0) this.#bins.set(this.#bin, (this.#bins.get(this.#bin) ?? 0) + this.#binCount);
    this.#bin = next;
    this.#binCount = 0;
  }
}
