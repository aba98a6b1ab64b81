/** A message that was published. */
export interface PublishedBatch {
  /** Its number: counts from 0 without a gap. */
  sequence: number;
  payload: Uint8Array;
}

/** The batches published last, for readers that have lost some: bounded by their number and by their bytes. */
export class ReplayBuffer {
  readonly #maxBatches: number;
  readonly #maxBytes: number;
  #batches: PublishedBatch[] = [];
  /** Index of the oldest batch that is kept; those before it are dropped from time to time. */
  #first = 0;
  #bytes = 0;

  constructor(maxBatches: number, maxBytes: number) {
    this.#maxBatches = maxBatches;
    this.#maxBytes = maxBytes;
  }

  get size(): number {
    return this.#batches.length - this.#first;
  }

  /** The oldest batches go where there are too many; a batch that is too large alone is not kept. */
  add(batch: PublishedBatch): void {
    this.#batches.push(batch);
    this.#bytes += batch.payload.length;
    while (this.size > 0 && (this.size > this.#maxBatches || this.#bytes > this.#maxBytes)) {
      this.#bytes -= this.#batches[this.#first]!.payload.length;
      this.#first += 1;
    }
    if (this.#first * 2 > this.#batches.length) {
      this.#batches = this.#batches.slice(this.#first);
      this.#first = 0;
    }
  }

  /** What is kept of the batches from this number on, in their order. */
  from(sequence: number): PublishedBatch[] {
    return this.#batches.slice(this.#first).filter((batch) => batch.sequence >= sequence);
  }
}
