import { performance } from 'node:perf_hooks';
import type { InferListener } from '../../callbacks/infer/infer-types.js';
import type {
  BatchStatistics,
  FailureReason,
  InferStatistics,
  StatisticDuration,
  TimeCounts,
  VersionStatistics,
} from './infer-model.js';

/** Nanoseconds of the parts of one execution. */
export interface ExecutionTimes {
  inputNs: number;
  inferNs: number;
  outputNs: number;
}

/** Batch sizes that are counted apart; larger ones of a model without a limit share the last. */
const MAX_BATCH_SIZES = 1024;

/** Bounds of the times to a first response, in milliseconds. Source: Triton's defaults. */
const FIRST_RESPONSE_BOUNDS = [100, 500, 2000, 5000];

/** Nanoseconds since a moment of performance.now. */
export const nsSince = (startMs: number): number => 1e6 * (performance.now() - startMs);

const zero = (): StatisticDuration => ({ count: 0, ns: 0 });

/** Counts of one version of a model since it was loaded, whichever protocol its requests came by. */
export class InferenceCounters {
  #lastInference = 0;
  #inferences = 0;
  #executions = 0;
  readonly #failures: Record<FailureReason, number> = { REJECTED: 0, CANCELED: 0, BACKEND: 0, OTHER: 0 };
  readonly #infer: InferStatistics = {
    success: zero(),
    fail: zero(),
    queue: zero(),
    compute_input: zero(),
    compute_infer: zero(),
    compute_output: zero(),
    cache_hit: zero(),
    cache_miss: zero(),
  };
  readonly #batches = new Map<number, BatchStatistics>();
  readonly #firstResponses = FIRST_RESPONSE_BOUNDS.map(() => 0).concat(0);
  #firstResponsesMs = 0;

  /** A listener that notes when the first response of its request comes. @param sinceNs nanoseconds that the request has taken */
  notingFirst(on: InferListener, sinceNs: () => number): InferListener {
    let hasResponded = false;
    return {
      response: (response) => {
        if (!hasResponded) this.noteFirstResponse(sinceNs());
        hasResponded = true;
        return on.response(response);
      },
      end: () => on.end(),
      fail: (error) => on.fail(error),
    };
  }

  /** Counts one execution of a batch with `rows` rows. */
  noteExecution(rows: number, { inputNs, inferNs, outputNs }: ExecutionTimes): void {
    this.#executions++;
    const size = Math.min(rows, MAX_BATCH_SIZES);
    let batch = this.#batches.get(size);
    if (batch === undefined) {
      batch = { batch_size: size, compute_input: zero(), compute_infer: zero(), compute_output: zero() };
      this.#batches.set(size, batch);
    }
    add(batch.compute_input, inputNs);
    add(batch.compute_infer, inferNs);
    add(batch.compute_output, outputNs);
  }

  /** Counts an answered request of `rows` rows. @param totalNs from its arrival to its last response */
  noteSuccess(rows: number, totalNs: number, queueNs: number, times: ExecutionTimes): void {
    this.#lastInference = Date.now();
    this.#inferences += rows;
    add(this.#infer.success, totalNs);
    add(this.#infer.queue, queueNs);
    add(this.#infer.compute_input, times.inputNs);
    add(this.#infer.compute_infer, times.inferNs);
    add(this.#infer.compute_output, times.outputNs);
  }

  /** Requests that were answered, of which the times are noted apart. */
  noteAnswered(count: number): void {
    this.#lastInference = Date.now();
    this.#inferences += count;
    this.#infer.success.count += count;
    this.#infer.compute_infer.count += count;
  }

  /** Nanoseconds of requests whose answers are noted apart: in all, and while they were computed. */
  noteTime(totalNs: number, inferNs: number): void {
    this.#infer.success.ns += totalNs;
    this.#infer.compute_infer.ns += inferNs;
  }

  /** Requests that have left the queue, and the sum of what they waited. */
  noteQueued(count: number, ns: number): void {
    this.#infer.queue.count += count;
    this.#infer.queue.ns += ns;
  }

  /** A request that was not answered. @param totalNs from its arrival to its failure */
  noteFailure(reason: FailureReason, totalNs: number): void {
    this.#lastInference = Date.now();
    this.#failures[reason]++;
    add(this.#infer.fail, totalNs);
  }

  /** A request of a model with several responses has its first one. @param ns since its arrival */
  noteFirstResponse(ns: number): void {
    const ms = ns / 1e6;
    const above = FIRST_RESPONSE_BOUNDS.findIndex((bound) => ms <= bound);
    this.#firstResponses[above < 0 ? FIRST_RESPONSE_BOUNDS.length : above]!++;
    this.#firstResponsesMs += ms;
  }

  firstResponses(): TimeCounts {
    return {
      bounds: FIRST_RESPONSE_BOUNDS,
      counts: [...this.#firstResponses],
      sumMs: this.#firstResponsesMs,
    };
  }

  failures(): Readonly<Record<FailureReason, number>> {
    return { ...this.#failures };
  }

  /** Milliseconds since 1970 of the latest request that ended; 0: none yet. */
  get lastInference(): number {
    return this.#lastInference;
  }

  read(): VersionStatistics {
    const batches = [...this.#batches.values()].sort((a, b) => a.batch_size - b.batch_size);
    return {
      last_inference: this.#lastInference,
      inference_count: this.#inferences,
      execution_count: this.#executions,
      inference_stats: copied(this.#infer),
      batch_stats: batches.map(copied),
    };
  }
}

function add(duration: StatisticDuration, ns: number): void {
  duration.count++;
  duration.ns += ns;
}

/**
 * A copy of the numbers that is no longer counted on. A model may have many batch sizes, and is read often:
 * structuredClone takes longer.
 */
function copied<T extends object>(durations: T): T {
  const pairs = Object.entries(durations).map(([name, value]) => [
    name,
    typeof value === 'object' ? { ...value } : value,
  ]);
  return Object.fromEntries(pairs) as T;
}
