import { worded } from '../../../base/named-text.js';
import type { ModelType } from '../../../callbacks/gpt-manager-options.js';
import { RESPONSE_ERROR, RESPONSE_FINAL } from '../../../callbacks/response-batch.js';
import type { InferenceRequest } from '../../../callbacks/types.js';
import type { RopeTable } from '../../../engine/batch/rope-table.js';
import type { Executor } from '../../../engine/executors/executor.js';
import type { IterationReport, LoopCallbacks } from '../../../engine/intake/loop-callbacks.js';
import { NUMBERS_PER_STEP } from '../../../engine/loop/flight-recorder.js';
import type { LoopOptions } from '../../../engine/loop/loop-options.js';
import { assembleLoop } from '../../../engine/worker/assemble-loop.js';
import { KvCacheManager } from '../../../kvcache/kv-cache-manager.js';
import type { Arrival } from './workload.js';

export interface SchemeSetup {
  modelType: ModelType;
  executor: Executor;
  rope: RopeTable;
  /** Blocks of the pool; those for padding lie after them. */
  numBlocks: number;
  maxNumSequences: number;
  maxNumTokens: number;
  maxSeqLen: number;
  /** Default: real time. */
  time?: SchemeTime;
}

/** Milliseconds since 1970, and a wait. */
export interface SchemeTime {
  now(): number;
  sleep(ms: number): void;
}

const REAL_TIME: SchemeTime = {
  now: () => performance.timeOrigin + performance.now(),
  sleep: (ms) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms),
};

/** Course of a request, in milliseconds from the first arrival. */
export interface Course {
  arrivalMs: number;
  promptTokens: number;
  newTokens: number;
  /** Begin and end of the steps with a chunk of its context. */
  chunks: [number, number][];
  firstTokenMs: number;
  lastTokenMs: number;
  /** When its final response left. */
  endMs: number;
}

export interface SchemeResult {
  tokensPerSecond: number;
  /** Arrival to the final response, of each request. */
  latenciesMs: number[];
  /** Arrival to the first token, of each request. */
  firstTokensMs: number[];
  /** Share of the rows of generation steps that ran for no sequence; 0 to 1. */
  emptyShare: number;
  /** The requests' courses, in the order of their arrivals. */
  courses: Course[];
}

/** Runs the arrivals at their times through a loop in this thread. */
export function runScheme(setup: SchemeSetup, arrivals: readonly Arrival[]): SchemeResult {
  const { modelType, executor, rope, numBlocks, maxNumSequences, maxNumTokens, maxSeqLen } = setup;
  const { time = REAL_TIME } = setup;
  const { tokensPerBlock } = executor.options;
  const chunking = { policy: 'FIRST_COME_FIRST_SERVED', unit: tokensPerBlock } as const;
  const options: LoopOptions = {
    modelType,
    schedulerPolicy: 'GUARANTEED_NO_EVICT',
    microBatch: {
      maxBatchSize: maxNumSequences,
      maxNumTokens,
      ...(modelType === 'V1' ? {} : { chunking }),
    },
    maxNumSequences,
    maxInputLen: maxSeqLen,
    maxSeqLen,
    maxBeamWidth: 1,
    maxTopLogProbs: 0,
  };
  const client = new Client(arrivals, time);
  const kvCache = new KvCacheManager({ numBlocks, tokensPerBlock, maxSeqLen });
  const loop = assembleLoop(options, {
    executor,
    kvCache,
    rope,
    callbacks: client,
    clock: () => time.now(),
    drawSeed: () => 0n,
  });
  while (!client.isDone) {
    if (loop.iterate()) client.noteSteps(loop.formation().record.steps);
    else client.sleepUntilNext();
  }
  return client.result();
}

const PAUSE = 1;

/** Hands each request over once its time has come and notes when its tokens are there. */
class Client implements LoopCallbacks {
  readonly wantsStatsJson = false;
  readonly #arrivals: readonly Arrival[];
  readonly #time: SchemeTime;
  readonly #startMs: number;
  readonly #firstTokensMs = new Map<bigint, number>();
  readonly #lastTokensMs = new Map<bigint, number>();
  readonly #latenciesMs = new Map<bigint, number>();
  /** When the chunks of each request began and ended, on the clock's time. */
  readonly #chunks = new Map<number, [number, number][]>();
  #next = 0;
  #generated = 0;
  #empty = 0;
  #generationRows = 0;

  constructor(arrivals: readonly Arrival[], time: SchemeTime) {
    this.#arrivals = arrivals;
    this.#time = time;
    this.#startMs = time.now();
  }

  get isDone(): boolean {
    return this.#latenciesMs.size === this.#arrivals.length;
  }

  getInferenceRequests(max: number): InferenceRequest[] {
    const requests: InferenceRequest[] = [];
    const nowMs = this.#time.now() - this.#startMs;
    while (requests.length < max) {
      const arrival = this.#arrivals[this.#next];
      if (arrival === undefined || arrival.atMs > nowMs) break;
      requests.push({ ...arrival.request, arrivalTimeMs: this.#startMs + arrival.atMs });
      this.#next++;
    }
    return requests;
  }

  pollStopSignals(): Iterable<bigint> {
    return [];
  }

  endIteration({ responses, stats }: IterationReport): void {
    const nowMs = this.#time.now() - this.#startMs;
    for (const { text } of responses.errors) throw new Error(worded(text));
    for (let i = 0; i < responses.count; i++) {
      const requestId = responses.requestIds[i]!;
      const { atMs } = this.#arrivals[Number(requestId)]!;
      const tokens = responses.tokenStart[i + 1]! - responses.tokenStart[i]!;
      if (tokens > 0 && !this.#firstTokensMs.has(requestId)) this.#firstTokensMs.set(requestId, nowMs - atMs);
      if (tokens > 0) this.#lastTokensMs.set(requestId, nowMs - atMs);
      const isFinal = (responses.flags[i]! & (RESPONSE_FINAL | RESPONSE_ERROR)) !== 0;
      if (isFinal) this.#latenciesMs.set(requestId, nowMs - atMs);
    }
    if (stats === null) return;
    this.#generated += stats.generatedTokens;
    this.#empty += stats.emptyGenerationSlots;
    this.#generationRows += stats.generationRequests + stats.emptyGenerationSlots;
  }

  reportError(error: Error): void {
    throw error;
  }

  /** Chunks of contexts, and pauses, which have no length: see FlightRecord.steps. */
  noteSteps(steps: Float64Array): void {
    for (let first = 0; first < steps.length; first += NUMBERS_PER_STEP) {
      const [id, kind, begin, end] = steps.subarray(first, first + NUMBERS_PER_STEP);
      if (kind === PAUSE) continue;
      const chunks = this.#chunks.get(id!) ?? [];
      chunks.push([begin!, end!]);
      this.#chunks.set(id!, chunks);
    }
  }

  /** Nothing is active: blocks the thread until the next request is due. */
  sleepUntilNext(): void {
    const next = this.#arrivals[this.#next];
    if (next === undefined) return;
    const waitMs = this.#startMs + next.atMs - this.#time.now();
    if (waitMs > 0) this.#time.sleep(waitMs);
  }

  result(): SchemeResult {
    const seconds = (this.#time.now() - this.#startMs - this.#arrivals[0]!.atMs) / 1000;
    return {
      tokensPerSecond: this.#generated / seconds,
      latenciesMs: [...this.#latenciesMs.values()],
      firstTokensMs: [...this.#firstTokensMs.values()],
      emptyShare: this.#generationRows === 0 ? 0 : this.#empty / this.#generationRows,
      courses: this.#arrivals.map((arrival, index) => this.#courseOf(arrival, index)),
    };
  }

  #courseOf({ atMs, request: { requestId, inputs } }: Arrival, index: number): Course {
    const firstMs = this.#arrivals[0]!.atMs;
    const arrivalMs = atMs - firstMs;
    const chunks = this.#chunks.get(index) ?? [];
    const sinceFirst = (ms: number) => ms - this.#startMs - firstMs;
    return {
      arrivalMs,
      promptTokens: inputs.input_ids!.data.length,
      newTokens: Number(inputs.request_output_len!.data[0]),
      chunks: chunks.map(([begin, end]) => [sinceFirst(begin), sinceFirst(end)]),
      firstTokenMs: arrivalMs + this.#firstTokensMs.get(requestId)!,
      lastTokenMs: arrivalMs + this.#lastTokensMs.get(requestId)!,
      endMs: arrivalMs + this.#latenciesMs.get(requestId)!,
    };
  }
}
