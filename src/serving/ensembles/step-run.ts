import type { InferResponse } from '../../../callbacks/infer/infer-types.js';
import type { InferModel } from '../infer-model.js';
import type { Lease } from './lease.js';
import type { SequencePlace } from './sequence-parameters.js';

/** One request of a step to its model. */
export interface StepRun {
  readonly step: number;
  readonly iteration: number;
  readonly model: InferModel;
  /** Of the tensors that it takes; given up when it has ended. */
  readonly leases: readonly Lease[];
  /** Rows of its request; 0: the model takes no batches. */
  readonly batchSize: number;
  readonly sequence: SequencePlace;
  numResponses: number;
  /** Responses that came before those of the requests in front of it had all come. */
  readonly held: Leased[];
  hasEnded: boolean;
}

/** A response, and its memory. */
export interface Leased {
  readonly response: InferResponse;
  readonly lease: Lease;
}

/** A response whose turn it is, and whose it is. */
export interface Released extends Leased {
  readonly run: StepRun;
}

/**
 * Requests of one step to its model, in the order in which they began. They run concurrently; their results
 * are passed on in their order, so that tensors of the same number belong together.
 */
export class StepRuns {
  readonly #queue = new Set<StepRun>();
  begin(run: StepRun): void {
    this.#queue.add(run);
  }

  has(predicate: (run: StepRun) => boolean): boolean {
    return [...this.#queue].some((run) => !run.hasEnded && predicate(run));
  }

  /** A response has come. @returns what is passed on now, in order */
  respond(run: StepRun, leased: Leased): Released[] {
    run.numResponses++;
    for (const first of this.#queue) {
      if (first === run) return [{ run, ...leased }];
      break;
    }
    run.held.push(leased);
    return [];
  }

  /** A run has ended. @returns what was held and is passed on now, in order */
  end(ended: StepRun): Released[] {
    ended.hasEnded = true;
    const released: Released[] = [];
    for (const run of this.#queue) {
      for (const leased of run.held.splice(0)) released.push({ run, ...leased });
      if (!run.hasEnded) break;
      this.#queue.delete(run);
    }
    return released;
  }
}
