import type { ManagerState } from '../../callbacks/gpt-manager-options.js';
import type { ItemsAnswer, ItemsCommand } from '../../callbacks/items-messages.js';
import type { WorkerRestartOptions } from '../../callbacks/restart-policy.js';
import { RequestError } from '../../callbacks/token-request.js';
import {
  type EncoderBudget,
  type EncoderPick,
  type EncoderWork,
  takeEncoderBatch,
} from '../../scheduler/tokens/encoder-scheduler.js';
import { type CloseOptions, DEFAULT_MAX_QUEUE_SIZE } from '../in-process-host.js';
import type { BatchEntry } from './batch-duties.js';
import { type BatchFormer, type Formed, NO_BATCH } from './batch-former.js';
import { BatchHost } from './batch-host.js';
import type { BatchHostOptions, OpenGroup } from './batch-host-options.js';

export interface ItemsHostOptions {
  /** Number of requests that may wait or run before another one throws QueueFullError; default 256. */
  maxQueueSize?: number | undefined;
  /** Options with the meaning that OptionalParams of the GptManager gives them. */
  isolate?: boolean | undefined;
  workerRestart?: WorkerRestartOptions | false | undefined;
  watchdogTimeoutMs?: number | undefined;
  terminateTimeoutMs?: number | undefined;
  onStateChange?: (state: ManagerState, failure: Error | null) => void;
  /** Called with failures that belong to no request, such as a callback that threw. Default: a process warning. */
  onError?: (error: Error) => void;
}

/** Options of one request. */
export interface ComputeOptions {
  /** Signal whose abort ends the request. */
  signal?: AbortSignal | undefined;
  /** Called after each batch that had items of the request, with the number of them that are done. */
  onDone?: ((items: number) => void) | undefined;
}

/** What the items of a host are, and what runs them. */
export interface ItemsDuties<Item, Info> extends Pick<BatchHostOptions, 'subject' | 'script' | 'data'> {
  /** See BatchHostOptions. */
  openGroup?(host: GroupHolder): OpenGroup;
  /** What counts against the limits of a batch. */
  sizeOf(item: Item): number;
  limitsOf(info: Info): EncoderBudget;
  /** Why one of the items would make the executor refuse its whole batch; null: all are valid. */
  whyInvalid(items: readonly Item[], info: Info): string | null;
  /** A batch is answered. @param size of all its items together */
  onBatch(items: number, size: number, forwardMs: number): void;
}

/** The host, as what opens a group of workers uses it. */
export type GroupHolder = Pick<BatchHost<never, never, never, never, never>, 'hold' | 'tell'>;

/** A request from submission to its last item. */
interface Entry<Item> extends EncoderWork, BatchEntry {
  items: readonly Item[];
  rows: (Float32Array | null)[];
  missing: number;
  onDone: ComputeOptions['onDone'];
  resolve(rows: Float32Array[]): void;
}

type Batch<Item> = readonly EncoderPick<Entry<Item>>[];

/** Batches that the worker has: one that it computes and one that waits, so that it never waits for this thread. */
const BATCHES_AHEAD = 2;

/**
 * What computes values of items, such as texts or pictures, in a worker of its own, a thread or a process, for this process: a BatchHost
 * whose batches `takeEncoderBatch` forms, from whatever waits when the worker can take another. Requests join and leave between two batches.
 *
 *   compute -> waiting requests -> takeEncoderBatch -> worker -> rows -> each request's promise, with its last item
 *
 * Should the worker die, requests of which it computed a part fail with a RequestError; the others go to the next worker, or
 * fail with a HostClosedError where there will be none.
 */
export class ItemsHost<Item, Info> {
  readonly #duties: ItemsDuties<Item, Info>;
  readonly #former = new ItemsFormer<Entry<Item>>();
  readonly #host: BatchHost<Entry<Item>, Batch<Item>, Info, ItemsAnswer, ItemsCommand<Item>>;

  constructor(options: ItemsHostOptions, duties: ItemsDuties<Item, Info>) {
    this.#duties = duties;
    const { maxQueueSize = DEFAULT_MAX_QUEUE_SIZE, isolate, workerRestart } = options;
    const { watchdogTimeoutMs, terminateTimeoutMs, onStateChange, onError } = options;
    const { subject, script, data } = duties;
    this.#host = new BatchHost(
      {
        subject,
        script,
        data,
        openGroup: duties.openGroup?.({
          hold: (why) => this.#host.hold(why),
          tell: (callback, call) => this.#host.tell(callback, call),
        }),
        batchesAhead: BATCHES_AHEAD,
        maxEntries: maxQueueSize,
        isolate,
        workerRestart,
        watchdogTimeoutMs,
        terminateTimeoutMs,
        onStateChange,
        onError,
      },
      {
        former: this.#former,
        noteReady: (info) => this.#start(info),
        entriesOf: (batch) => batch.map(({ work }) => work),
        pack: (batch) => ({
          command: { type: 'batch', items: batch.map(({ work, index }) => work.items[index]!) },
          transfer: [],
        }),
        endsBatch: () => true,
        deliver: (answer, batch) => this.#deliver(answer, batch ?? []),
        lostError: (error) => new RequestError(`The engine failed: ${error.message}`),
      },
    );
  }

  /** Settles when the worker has loaded; rejects where it cannot. */
  get ready(): Promise<Info> {
    return this.#host.ready;
  }

  get state(): ManagerState {
    return this.#host.state;
  }

  /** Why the state is 'failed' or 'restarting', else null. */
  get failure(): Error | null {
    return this.#host.failure;
  }

  /** Properties of what runs, or ran last; null: it is not loaded yet. */
  get info(): Info | null {
    return this.#host.infos[0]!;
  }

  /** Workers started after the first one. */
  get restarts(): number {
    return this.#host.restarts;
  }

  /** See GptManager.pid. */
  get pid(): number | null {
    return this.#host.pids[0]!;
  }

  /** Number of requests of which the worker has been given nothing. */
  get queued(): number {
    return this.#host.size - this.running;
  }

  /** Number of requests of which the worker has been given a part. */
  get running(): number {
    return this.#host.running;
  }

  /** Takes no more requests, lets those that were taken end, and ends the worker. May be called again, to abort. */
  close(options?: CloseOptions): Promise<void> {
    return this.#host.close(options);
  }

  /**
   * Computes the values of items, in their order. An aborted signal rejects at once with its reason.
   * @throws QueueFullError, HostClosedError at once; rejects with a RequestError for an invalid item, and where the engine fails
   */
  protected compute(
    items: readonly Item[],
    { signal, onDone }: ComputeOptions = {},
  ): Promise<Float32Array[]> {
    this.#host.requireRoom();
    signal?.throwIfAborted();
    if (items.length === 0) return Promise.resolve([]);
    return new Promise((resolve, reject) => {
      const wrong = this.info && this.#duties.whyInvalid(items, this.info);
      if (wrong) {
        reject(new RequestError(wrong, { kind: 'invalid' }));
        return;
      }
      const entry: Entry<Item> = {
        items,
        lengths: items.map((item) => this.#duties.sizeOf(item)),
        taken: 0,
        rows: items.map(() => null),
        missing: items.length,
        hasStarted: false,
        release: null,
        onDone,
        resolve,
        fail: reject,
      };
      this.#host.submit(entry, signal);
    });
  }

  #start(info: Info): void {
    this.#former.limits = this.#duties.limitsOf(info);
    for (const entry of [...this.#host.entries()]) {
      const wrong = this.#duties.whyInvalid(entry.items, info);
      if (wrong !== null) this.#host.fail(entry, new RequestError(wrong, { kind: 'invalid' }));
    }
  }

  #deliver({ rows, errors, forwardMs }: ItemsAnswer, batch: Batch<Item>): void {
    let size = 0;
    const advanced = new Set<Entry<Item>>();
    for (const [i, { work, index }] of batch.entries()) {
      size += work.lengths[index]!;
      if (!this.#host.has(work)) continue;
      const error = errors[i];
      if (error) {
        this.#host.fail(work, new RequestError(error));
        continue;
      }
      work.rows[index] = rows[i]!;
      work.missing--;
      advanced.add(work);
    }
    for (const work of advanced) this.#advance(work);
    this.#host.tell('onBatch', () => this.#duties.onBatch(batch.length, size, forwardMs));
  }

  /** Reports its new rows to a request, and ends it with the last one. */
  #advance(work: Entry<Item>): void {
    if (!this.#host.has(work)) return;
    const done = work.items.length - work.missing;
    if (work.onDone) this.#host.tell('onProgress', () => work.onDone!(done));
    if (work.missing > 0) return;
    this.#host.settle(work);
    work.resolve(work.rows as Float32Array[]);
  }
}

/** Forms batches of the items of requests, which take turns; see takeEncoderBatch. */
class ItemsFormer<Entry extends EncoderWork> implements BatchFormer<Entry, readonly EncoderPick<Entry>[]> {
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
