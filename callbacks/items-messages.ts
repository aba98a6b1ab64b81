/** Messages from the host to a worker that computes items. After each message the host rings the doorbell. */
export type ItemsCommand<Item> =
  | { type: 'batch'; items: readonly Item[] }
  /** Asks the worker to end once every batch before this message has been answered. */
  | { type: 'shutdown' };

/** What becomes of the items of a batch. Batches are answered in order. */
export interface ItemsAnswer {
  type: 'rows';
  /** Values of each item, in memory of their own, which the host gets without a copy; those of one with an error are all 0. */
  rows: Float32Array<ArrayBuffer>[];
  /** Error of each item; null: no error. */
  errors: (string | null)[];
  /** Duration of the forward, in milliseconds. */
  forwardMs: number;
}
