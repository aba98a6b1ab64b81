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
  readonly held: InferResponse[];
  hasEnded: boolean;
}

/** A response whose turn it is, and whose it is. */
export interface Released {
  run: StepRun;
  response: InferResponse;
}

/**
 * Requests of one step to its model, in the order in which they began. They run beside each other; what they give goes on in their order,
 * so that tensors of the same number belong together.
 */
export class StepRuns {
  readonly #queue = new Set<StepRun>();
  /** Responses that are held. */
  numHeld = 0;

  begin(run: StepRun): void {
    this.#queue.add(run);
  }

  has(predicate: (run: StepRun) => boolean): boolean {
    return [...this.#queue].some((run) => !run.hasEnded && predicate(run));
  }

  /** A response has come. @returns what goes on now, in order */
  respond(run: StepRun, response: InferResponse): Released[] {
    run.numResponses++;
    for (const first of this.#queue) {
      if (first === run) return [{ run, response }];
      break;
    }
    run.held.push(response);
    this.numHeld++;
    return [];
  }

  /** A run has ended. @returns what was held and goes on now, in order */
  end(ended: StepRun): Released[] {
    ended.hasEnded = true;
    const released: Released[] = [];
    for (const run of this.#queue) {
      for (const response of run.held.splice(0)) released.push({ run, response });
      if (!run.hasEnded) break;
      this.#queue.delete(run);
    }
    this.numHeld -= released.length;
    return released;
  }
}
