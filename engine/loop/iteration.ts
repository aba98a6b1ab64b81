import type { ScheduledChunk } from '../../scheduler/tokens/types.js';
import type { SamplingOutput } from '../packed-call/sampling-batch.js';
import type { LlmRequest } from '../request/llm-request.js';
import type { KeptRows } from '../speculation/hidden-rows.js';
import type { RowFailures } from './logits-stage.js';
import { type IterationCounts, noCounts } from './loop-statistics.js';

/** Requests that run in one call of the executor, and the number of context tokens of each. */
export type Chunks = readonly ScheduledChunk<LlmRequest>[];

/** A micro-batch from the first look for requests to the report of its results. */
export interface Iteration {
  /** Number of the iteration in its report. */
  readonly number: number;
  readonly startMs: number;
  /** The least number that no micro-batch running at the same time has; always 0 where none run. */
  microBatchId: number;
  readonly counts: IterationCounts;
}

export function newIteration(number: number, startMs: number): Iteration {
  return { number, startMs, microBatchId: 0, counts: noCounts() };
}

/** A call of the executor that has ended. */
export interface EndedCall {
  readonly chunks: Chunks;
  readonly iteration: Iteration;
  /**
   * Results of sampling, a row for each request that draws a token, in order; null if the call failed: its requests have
   * the reason.
   */
  readonly output: SamplingOutput | null;
  /** Requests whose draw does not count, with the reason. */
  readonly failures: RowFailures;
  /** Requests that did not move on: their step is repeated when their masks have come. */
  readonly late: ReadonlySet<LlmRequest>;
  /** Rows that were kept for a head, null where none drafts, and whose they are. */
  readonly keptRows: Float32Array | null;
  readonly keptOf: readonly KeptRows[];
}

/** The steps that the executor computes while the loop goes on; other parts must not interfere with them. */
export class RunningSteps {
  /** The iteration of each step, oldest first. Set by the runner of calls. */
  iterations: readonly Iteration[] = [];

  get count(): number {
    return this.iterations.length;
  }
}
