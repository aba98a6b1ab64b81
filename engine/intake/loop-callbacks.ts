import type { IterationStats } from '../../callbacks/gpt-manager-options.js';
import type { InferenceRequest } from '../../callbacks/types.js';
import type { SequenceStop } from '../../callbacks/worker-messages.js';
import type { KvCacheEvent } from '../../kvcache/cache-events.js';
import type { ResponseWriter } from './response-writer.js';

/**
 * Results that one iteration reports at its end. The writer is emptied afterwards, so the receiver must copy what it
 * keeps.
 */
export interface IterationReport {
  responses: ResponseWriter;
  /** null if nothing was active (only refusals are sent). */
  stats: IterationStats | null;
  /** The statistics string; null if nothing was active or nobody wants it. */
  json: string | null;
  /** Number of requests that can be taken now. */
  freePlaces: number;
  /** What happened to cached blocks; absent where nothing did or nobody asked. */
  kvEvents?: KvCacheEvent[];
}

/** The callbacks as the loop sees them, whichever thread they live in. None of them may throw. */
export interface LoopCallbacks {
  readonly wantsStatsJson: boolean;
  /** At the start of each iteration; more than `max` are refused. */
  getInferenceRequests(max: number): readonly InferenceRequest[];
  /** After the step: requests to be stopped, whatever state they are in. */
  pollStopSignals(): Iterable<bigint>;
  /** The same for single sequences of requests with several. */
  pollSequenceStops?(): Iterable<SequenceStop>;
  /** At the end of each iteration that has something to send or in which something was active. */
  endIteration(report: IterationReport): void;
  /** A failure that belongs to no request. */
  reportError(error: Error): void;
}
