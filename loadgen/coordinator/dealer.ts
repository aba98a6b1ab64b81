import type { Scheduled } from '../arrivals/schedule.js';
import type { IssueFrame } from '../worker/frames.js';

/** Number of samples up to which workers keep them, in a dataset that begins again. */
const KEPT_SAMPLES = 10_000;

interface Hand {
  requests: number[];
  sampleNumbers: number[];
  samples: IssueFrame['samples'];
  atMs: number[];
}

/**
 * Deals a schedule to workers in turn (their counts differ by at most 1) and packs each worker's samples into frames.
 */
export class Dealer {
  /** Number of requests dealt; then of samples dealt to each worker. */
  requests = 0;
  readonly samples: number[];
  isExhausted = false;
  readonly #schedule: Iterator<Scheduled, void>;
  readonly #startMs: number;
  readonly #keepSamples: boolean;
  readonly #known: Set<number>[];
  readonly #hands: Hand[];
  #turn = 0;
  #next: Scheduled | null;

  constructor(schedule: Iterator<Scheduled, void>, workers: number, startMs: number, datasetSize: number) {
    this.#schedule = schedule;
    this.#startMs = startMs;
    this.#keepSamples = datasetSize <= KEPT_SAMPLES;
    this.samples = new Array<number>(workers).fill(0);
    this.#known = this.samples.map(() => new Set());
    this.#hands = this.samples.map(emptyHand);
    this.#next = null;
    this.#advance();
  }

  /** Deals all samples before an offset; Infinity deals the rest. */
  dealUntil(offsetMs: number): void {
    while (this.#next !== null && this.#next.offsetMs < offsetMs) this.#deal(this.#next);
  }

  /** Deals a number of samples to each worker, as far as there are any. */
  dealRounds(rounds: number): void {
    for (let i = rounds * this.samples.length; i > 0 && this.#next !== null; i--) this.#deal(this.#next);
  }

  /** Exhausts the schedule. @returns the number of its requests that were not dealt. */
  skipRest(): number {
    let count = 0;
    for (; this.#next !== null; this.#advance()) count += this.#next.sample.turns.length;
    return count;
  }

  /** Frames with the samples dealt to each worker since the last call; null for none. */
  takeFrames(): (IssueFrame | null)[] {
    return this.#hands.map((hand, i) => {
      if (hand.requests.length === 0) return null;
      this.#hands[i] = emptyHand();
      return { type: 'issue', keepSamples: this.#keepSamples, ...hand };
    });
  }

  #deal(scheduled: Scheduled): void {
    const worker = this.#turn;
    this.#turn = (worker + 1) % this.samples.length;
    const { request, sampleNumber, sample, offsetMs } = scheduled;
    const hand = this.#hands[worker]!;
    const known = this.#known[worker]!;
    hand.requests.push(request);
    hand.sampleNumbers.push(sampleNumber);
    hand.samples.push(known.has(sampleNumber) ? null : sample);
    if (this.#keepSamples) known.add(sampleNumber);
    if (!Number.isNaN(offsetMs)) hand.atMs.push(this.#startMs + offsetMs);
    this.samples[worker]!++;
    this.requests += sample.turns.length;
    this.#advance();
  }

  #advance(): void {
    const next = this.#schedule.next();
    this.#next = next.done ? null : next.value;
    this.isExhausted = this.#next === null;
  }
}

function emptyHand(): Hand {
  return { requests: [], sampleNumbers: [], samples: [], atMs: [] };
}
