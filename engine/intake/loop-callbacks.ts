import type { IterationStats } from '../../callbacks/gpt-manager-options.js';
import type { InferenceRequest } from '../../callbacks/types.js';
import type { SequenceStop, TurnChanges } from '../../callbacks/worker-messages.js';
import type { KvCacheEvent } from '../../kvcache/cache-events.js';
import type { AdapterArrivals } from './adapter-arrivals.js';
import type { ResponseWriter } from './response-writer.js';

/**
 * Results that one iteration reports at its end. The writer is emptied afterwards, so the receiver must copy what it
 * keeps.
 */
export interface IterationReport {
  responses: ResponseWriter;
  /** null if nothing was active (only refusals are sent). */
  stats: IterationStats | null;
  /** The statistics string; null if nothing was active or no consumer wants it. */
  json: string | null;
  /** Number of requests that can be taken now. */
  freePlaces: number;
  /** Events of cached blocks; absent if there were none or no consumer wants them. */
  kvEvents?: KvCacheEvent[];
}

/** The callbacks in the form that the loop calls, whichever thread they live in. None of them may throw. */
export interface LoopCallbacks {
  readonly wantsStatsJson: boolean;
  /**
   * Called at the start of each iteration; requests beyond `max` are refused. @param arrivals reads new adapters in parts, where
   * requests can wait for that; null: requests have none
   */
  getInferenceRequests(max: number, arrivals?: AdapterArrivals | null): readonly InferenceRequest[];
  /** Called after the step: returns requests to be stopped, whatever state they are in. */
  pollStopSignals(): Iterable<bigint>;
  /** Like pollStopSignals, for single sequences of requests with several. */
  pollSequenceStops?(): Iterable<SequenceStop>;
  /** Called at the end of each iteration that has something to send or in which something was active. */
  endIteration(report: IterationReport): void;
  /** Called before the step: requests that take turns between waiting and running in this iteration. */
  noteTurns?(turns: TurnChanges): void;
  /** Reports a failure that belongs to no request. */
  reportError(error: Error): void;
}
