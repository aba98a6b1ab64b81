import type { FlightRecord, LatencyQuantiles } from '../../callbacks/formation.js';
import { LatencyWindow } from './latency-window.js';
import type { IterationCounts } from './loop-statistics.js';

/** Numbers of a step in FlightRecord.steps: id, kind, begin, end, from, tokens. */
export const NUMBERS_PER_STEP = 6;
/** Most steps kept until they are read; beyond that the oldest are forgotten. */
export const MAX_STEPS = 512;
const CHUNK = 0;
const PAUSE = 1;
const LAST_CHUNK = 2;

/**
 * Records recent events of a loop's requests, for monitoring: context chunks and pauses with their times, totals, and how
 * long tokens took. Its memory is fixed and nothing is allocated while it records, so that it can always run.
 */
export class FlightRecorder {
  readonly #steps = new Float64Array(MAX_STEPS * NUMBERS_PER_STEP);
  /** The iteration in which each step ends. */
  readonly #iterations = new Float64Array(MAX_STEPS);
  #first = 0;
  #count = 0;
  /** Number of the #count entries, from the first on, that belong to iterations that have ended. */
  #numEnded = 0;
  readonly #totals = {
    iterations: 0,
    iterationMs: 0,
    executorMs: 0,
    contextTokens: 0,
    generatedTokens: 0,
    scheduledRequests: 0,
    completedRequests: 0,
    pauses: 0,
    emptyGenerationSlots: 0,
  };
  #longestIterationMs = 0;
  readonly #firstToken = new LatencyWindow();
  readonly #interToken = new LatencyWindow();

  /**
   * Notes that a request's step of this iteration computes this many tokens of its context, after `from`;
   * after the last chunk it generates. The step begins when it is packed, not with the iteration, which
   * begins before it asks for requests.
   */
  noteChunk(
    requestId: bigint,
    iteration: number,
    chunk: { from: number; tokens: number; isLast: boolean },
    nowMs: number,
  ): void {
    const kind = chunk.isLast ? LAST_CHUNK : CHUNK;
    this.#add(iteration, Number(requestId), kind, nowMs, chunk.from, chunk.tokens);
  }

  /** Notes that a request has given its blocks back. */
  notePause(requestId: bigint, iteration: number, nowMs: number): void {
    this.#add(iteration, Number(requestId), PAUSE, nowMs, 0, 0);
  }

  /** Notes the time from a request's arrival to its first token. */
  noteFirstToken(ms: number, nowMs: number): void {
    this.#firstToken.note(ms, nowMs);
  }

  /** Notes that a request got `count` tokens at once, and the time since the one before. */
  noteTokens(count: number, ms: number, nowMs: number): void {
    this.#interToken.note(ms / count, nowMs, count);
  }

  /** Notes that the iteration, and with it every step of it, has ended. */
  endIteration(number: number, counts: IterationCounts, iterationMs: number, nowMs: number): void {
    while (this.#numEnded < this.#count) {
      const place = (this.#first + this.#numEnded) % MAX_STEPS;
      if (this.#iterations[place]! > number) break;
      this.#steps[place * NUMBERS_PER_STEP + 3] = nowMs;
      this.#numEnded++;
    }
    const totals = this.#totals;
    totals.iterations++;
    totals.iterationMs += iterationMs;
    totals.executorMs += counts.executorMs;
    totals.contextTokens += counts.contextTokens;
    totals.generatedTokens += counts.generatedTokens;
    totals.scheduledRequests += counts.contextRequests + counts.generationRequests;
    totals.completedRequests += counts.completedRequests;
    totals.pauses += counts.pausedRequests;
    totals.emptyGenerationSlots += counts.emptyGenerationSlots;
    this.#longestIterationMs = Math.max(this.#longestIterationMs, iterationMs);
  }

  /** Records since the last call; totals since the start. */
  take(nowMs: number): FlightRecord {
    const steps = new Float64Array(this.#numEnded * NUMBERS_PER_STEP);
    for (let i = 0; i < this.#numEnded; i++) {
      const start = ((this.#first + i) % MAX_STEPS) * NUMBERS_PER_STEP;
      steps.set(this.#steps.subarray(start, start + NUMBERS_PER_STEP), i * NUMBERS_PER_STEP);
    }
    this.#forget(this.#numEnded);
    const longestIterationMs = this.#longestIterationMs;
    this.#longestIterationMs = 0;
    const latency: LatencyQuantiles = {
      firstToken: this.#firstToken.quantiles(nowMs),
      interToken: this.#interToken.quantiles(nowMs),
    };
    return { nowMs, steps, totals: { ...this.#totals }, longestIterationMs, latency };
  }

  #add(iteration: number, id: number, kind: number, beginMs: number, from: number, tokens: number): void {
    if (this.#count === MAX_STEPS) this.#forget(1);
    const place = (this.#first + this.#count) % MAX_STEPS;
    const start = place * NUMBERS_PER_STEP;
    this.#iterations[place] = iteration;
    this.#steps[start] = id;
    this.#steps[start + 1] = kind;
    this.#steps[start + 2] = beginMs;
    this.#steps[start + 3] = beginMs;
    this.#steps[start + 4] = from;
    this.#steps[start + 5] = tokens;
    this.#count++;
  }

  /** Forgets the oldest steps. */
  #forget(count: number): void {
    this.#first = (this.#first + count) % MAX_STEPS;
    this.#count -= count;
    this.#numEnded = Math.max(0, this.#numEnded - count);
  }
}
