import type { InstanceCommand } from '../../callbacks/infer/instance-messages.js';
import type { RunningRequest } from './running-request.js';

/**
 * Requests whose clients have left, of the batch that runs and of those that wait in the worker's port. Batches run in the order of their
 * numbers, and a client may leave before its batch begins, while it runs, or when it is over here and not yet at the host:
 *
 *   batch 7 runs:   note 6 -> over, nothing      note 7 -> cancelled at once      note 9 -> kept until it begins
 */
export class CancelledRequests {
  #batch = -1;
  #running: readonly RunningRequest[] = [];
  readonly #early = new Map<number, Set<number>>();

  begin(batch: number, requests: readonly RunningRequest[]): void {
    this.#batch = batch;
    this.#running = requests;
    for (const request of this.#early.get(batch) ?? []) requests[request]?.cancel();
    this.drop(batch);
  }

  /** The batch is not run here. */
  drop(batch: number): void {
    this.#early.delete(batch);
  }

  note({ batch, request }: Extract<InstanceCommand, { type: 'cancelled' }>): void {
    if (batch === this.#batch) this.#running[request]?.cancel();
    if (batch <= this.#batch) return;
    const early = this.#early.get(batch) ?? new Set();
    this.#early.set(batch, early.add(request));
  }
}
