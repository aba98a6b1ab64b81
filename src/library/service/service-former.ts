import type { BatchEntry } from '../../../host/batch/batch-duties.js';
import type { BatchFormer, Formed } from '../../../host/batch/batch-former.js';
import {
  type BatcherConfig,
  DynamicBatcher,
  type QueuedRequest,
} from '../../../scheduler/tensors/dynamic-batcher.js';

/** A batch on its way through the service. */
export interface ServiceBatch<Entry> {
  readonly entries: readonly Entry[];
  /** What `preprocess` made of it; undefined before that. */
  prepared: unknown;
}

/**
 * The buffer of a service before its worker:
 *
 *   line: who waits for a place -> buffer [ maxBatchSize ] -> full, or maxDelayUs after its first element -> prepare -> ready -> worker
 *                                                              while fewer than batchesAhead batches are on their way
 *
 * A buffer whose time is over while too many batches are on their way continues to fill, and leaves when one
 * of them is done. Those in the line come into the buffer as soon as it is empty again, and their time begins
 * then.
 */
export class ServiceFormer<Entry extends BatchEntry> implements BatchFormer<Entry, ServiceBatch<Entry>> {
  readonly #maxBatchSize: number;
  readonly #maxOnTheirWay: number;
  readonly #prepare: (batch: ServiceBatch<Entry>) => void;
  readonly #buffer: DynamicBatcher<Buffered<Entry>>;
  readonly #buffered = new Map<Entry, Buffered<Entry>>();
  readonly #line = new Set<Entry>();
  #ready: ServiceBatch<Entry>[] = [];
  #numOnTheirWay = 0;

  /**
   * @param batching see serviceBatcher
   * @param prepare called with each batch in order; it calls `noteReady` or `noteOver` when the batch is prepared
   */
  constructor(
    { batcher, batchesAhead }: { batcher: BatcherConfig; batchesAhead: number },
    prepare: (batch: ServiceBatch<Entry>) => void,
  ) {
    this.#maxBatchSize = batcher.maxBatchSize;
    this.#maxOnTheirWay = batchesAhead;
    this.#prepare = prepare;
    this.#buffer = new DynamicBatcher(batcher);
  }

  add(entry: Entry, nowUs: number): void {
    this.#line.add(entry);
    this.#fill(nowUs);
  }

  remove(entry: Entry): void {
    this.#line.delete(entry);
    const buffered = this.#buffered.get(entry);
    if (buffered === undefined) return;
    this.#buffered.delete(entry);
    this.#buffer.remove(buffered);
  }

  form(nowUs: number, free: readonly number[], isDraining: boolean): Formed<Entry, ServiceBatch<Entry>> {
    const wakeAtUs = this.#begin(nowUs, isDraining);
    const batch = free.length > 0 ? (this.#ready.shift() ?? null) : null;
    return { batch, refused: [], wakeAtUs };
  }

  /** The worker can be given the batch. */
  noteReady(batch: ServiceBatch<Entry>): void {
    this.#ready.push(batch);
  }

  /** The batch has its results, or has failed. */
  noteOver(): void {
    this.#numOnTheirWay--;
  }

  /** Lets batches go for as long as they may; when to look again, where that is a matter of time. */
  #begin(nowUs: number, isDraining: boolean): number | null {
    for (;;) {
      this.#fill(nowUs);
      const hasRoom = this.#numOnTheirWay < this.#maxOnTheirWay;
      const { batch, wakeAtUs } = this.#buffer.next(nowUs, { hasRoom, isDraining });
      if (batch === null) return wakeAtUs;
      this.#numOnTheirWay++;
      for (const { entry } of batch) this.#buffered.delete(entry);
      this.#prepare({ entries: batch.map(({ entry }) => entry), prepared: undefined });
    }
  }

  #fill(nowUs: number): void {
    for (const entry of this.#line) {
      if (this.#buffer.size >= this.#maxBatchSize) return;
      this.#line.delete(entry);
      const buffered = { entry, rows: 1, fit: '', priority: 0, timeoutUs: 0 };
      this.#buffered.set(entry, buffered);
      this.#buffer.add(buffered, nowUs);
    }
  }
}

interface Buffered<Entry> extends QueuedRequest {
  readonly entry: Entry;
}
