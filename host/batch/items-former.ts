import {
  type EncoderPick,
  type EncoderWork,
  takeEncoderBatch,
} from '../../scheduler/tokens/encoder-scheduler.js';
import type { BatchFormer, Formed } from './batch-former.js';
import { NO_BATCH } from './batch-former.js';

/** Forms batches of the items of requests, which take turns; see takeEncoderBatch. */
export class ItemsFormer<Entry extends EncoderWork>
  implements BatchFormer<Entry, readonly EncoderPick<Entry>[]>
{
  /** Of what runs; null before it does. */
  limits: Parameters<typeof takeEncoderBatch>[1] | null = null;
  /** In order of arrival, those that have items to be given out. */
  readonly #waiting = new Set<Entry>();

  add(entry: Entry): void {
    this.#waiting.add(entry);
  }

  remove(entry: Entry): void {
    this.#waiting.delete(entry);
  }

  form(_nowUs: number, free: readonly number[]): Formed<Entry, readonly EncoderPick<Entry>[]> {
    if (free.length === 0 || this.limits === null || this.#waiting.size === 0) return NO_BATCH;
    const batch = takeEncoderBatch([...this.#waiting], this.limits);
    for (const { work } of batch) if (work.taken === work.lengths.length) this.#waiting.delete(work);
    return batch.length === 0 ? NO_BATCH : { ...NO_BATCH, batch };
  }
}
