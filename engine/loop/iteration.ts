import type { ScheduledChunk } from '../../scheduler/types.js';
import type { SamplingOutput } from '../decoding/sampling-batch.js';
import type { LlmRequest } from '../request/llm-request.js';
import type { RowFailures } from './logits-stage.js';
import { type IterationCounts, noCounts } from './loop-statistics.js';

/** Requests that run in one call of the executor, and how many context tokens each brings. */
export type Chunks = readonly ScheduledChunk<LlmRequest>[];

/** A micro-batch from the first look for requests to the report of what it did. */
export interface Iteration {
  /** The iteration counter with which it will be reported. */
  readonly number: number;
  readonly startMs: number;
  /** 1 where it began beside a micro-batch 0; always 0 without overlap. */
  microBatchId: 0 | 1;
  readonly counts: IterationCounts;
}

export function newIteration(number: number, startMs: number): Iteration {
  return { number, startMs, microBatchId: 0, counts: noCounts() };
}

/** A call of the executor that is over. */
export interface EndedCall {
  readonly chunks: Chunks;
  readonly iteration: Iteration;
  /** What was drawn, a row for each request that draws a token, in order; null where it failed: its requests know why. */
  readonly output: SamplingOutput | null;
  /** Requests whose draw does not count, and why. */
  readonly failures: RowFailures;
  /** Requests that are where they were: their step is done again when their masks have come. */
  readonly late: ReadonlySet<LlmRequest>;
}
