import { InferError } from '../../../callbacks/infer/infer-error.js';
import type { BatchFormer, Formed } from '../../../host/batch/batch-former.js';
import type { ModelConfig } from '../../../models/repository/model-config.js';
import { modelBatcher } from '../../../scheduler/tensors/batcher-presets.js';
import { DynamicBatcher } from '../../../scheduler/tensors/dynamic-batcher.js';
import type { BatchedEntry } from './batched-entry.js';

/** Requests of one batch, in its order. */
export type Batch = readonly BatchedEntry[];

/** The dynamic batcher as a batch host asks it. */
export class BatchedFormer implements BatchFormer<BatchedEntry, Batch> {
  readonly #batcher: DynamicBatcher<BatchedEntry>;

  constructor(config: ModelConfig) {
    this.#batcher = new DynamicBatcher(modelBatcher(config));
  }

  add(entry: BatchedEntry, nowUs: number): void {
    entry.queuedUs = nowUs;
    if (this.#batcher.add(entry, nowUs) === null) return;
    const id = entry.id === '' ? '<id_unknown>' : entry.id;
    throw new InferError(`[request id: ${id}] Exceeds maximum queue size`, 'unavailable');
  }

  putBack(entries: readonly BatchedEntry[]): void {
    this.#batcher.putBack(entries.map((request) => ({ request, enqueuedUs: request.queuedUs })));
  }

  remove(entry: BatchedEntry): void {
    this.#batcher.remove(entry);
  }

  goesAtUs(nowUs: number, _: number, isDraining: boolean): number {
    return this.#batcher.goesAtUs(nowUs, isDraining);
  }

  form(nowUs: number, free: readonly number[], isDraining: boolean): Formed<BatchedEntry, Batch> {
    const hasRoom = free.length > 0;
    const { batch, rejected, wakeAtUs } = this.#batcher.next(nowUs, { hasRoom, isDraining });
    const refusals = rejected.map((entry) => ({
      entry,
      error: new InferError('Request timeout expired', 'unavailable'),
    }));
    return { batch, refused: refusals, wakeAtUs };
  }
}
