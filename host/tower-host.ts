import type { ManagerState } from '../callbacks/gpt-manager-options.js';
import type { WorkerRestartOptions } from '../callbacks/restart-policy.js';
import { RequestError } from '../callbacks/token-request.js';
import type { TowerAnswer, TowerCommand, TowerInfo, TowerPicture } from '../callbacks/tower-messages.js';
import type { TowerWorkerData } from '../engine/tower/tower-worker.js';
import { towerWorkerScript } from '../engine/tower/worker-script.js';
import { pictureRows, whyUnseen } from '../models/towers/picture-places.js';
import type { EncoderPick, EncoderWork } from '../scheduler/tokens/encoder-scheduler.js';
import type { BatchEntry } from './batch/batch-duties.js';
import { BatchHost } from './batch/batch-host.js';
import { ItemsFormer } from './batch/items-former.js';
import { type CloseOptions, DEFAULT_MAX_QUEUE_SIZE } from './in-process-host.js';

export interface TowerHostOptions extends TowerWorkerData {
  /** Number of requests that may wait or run before `see` throws QueueFullError; default 256. */
  maxQueueSize?: number | undefined;
  /** Options with the meaning that OptionalParams of the GptManager gives them. */
  isolate?: boolean | undefined;
  workerRestart?: WorkerRestartOptions | false | undefined;
  watchdogTimeoutMs?: number | undefined;
  terminateTimeoutMs?: number | undefined;
  onStateChange?: (state: ManagerState, failure: Error | null) => void;
  /** Called with failures that belong to no request, such as a callback that threw. Default: a process warning. */
  onError?: (error: Error) => void;
  /** Called after each batch. */
  onBatch?: (batch: SeenBatch) => void;
}

/** Size of a batch and duration of its forward. */
export interface SeenBatch {
  pictures: number;
  patches: number;
  forwardMs: number;
}

/** A request from submission to its last picture. */
interface Entry extends EncoderWork, BatchEntry {
  pictures: readonly TowerPicture[];
  rows: (Float32Array | null)[];
  missing: number;
  resolve(rows: Float32Array[]): void;
}

type Batch = readonly EncoderPick<Entry>[];

/** Batches that the worker has: one that it computes and one that waits, so that it never waits for this thread. */
const BATCHES_AHEAD = 2;

/**
 * The part of a model that sees, in a worker of its own: pictures of many requests are computed together, and the loop of the text model
 * shares only processors with it.
 *
 *   see -> waiting requests -> takeEncoderBatch -> worker -> rows -> each request's promise, with its last picture
 *
 * Should the worker die, requests of which it computed a part fail with a RequestError; the others go to the next worker, or fail with a
 * HostClosedError where there will be none.
 */
export class TowerHost {
  readonly #options: TowerHostOptions;
  readonly #former = new ItemsFormer<Entry>();
  readonly #host: BatchHost<Entry, Batch, TowerInfo, TowerAnswer, TowerCommand>;

  constructor(options: TowerHostOptions) {
    this.#options = options;
    const { enginePath, params, maxQueueSize = DEFAULT_MAX_QUEUE_SIZE, ...life } = options;
    const { isolate, workerRestart, watchdogTimeoutMs, terminateTimeoutMs, onStateChange, onError } = life;
    this.#host = new BatchHost(
      {
        subject: 'The tower',
        script: towerWorkerScript(),
        data: () => ({ enginePath, params }),
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
          command: { type: 'batch', pictures: batch.map(({ work, index }) => work.pictures[index]!) },
          transfer: [],
        }),
        endsBatch: () => true,
        deliver: (answer, batch) => this.#deliver(answer, batch ?? []),
        lostError: (error) => new RequestError(`The engine failed: ${error.message}`),
      },
    );
  }

  /** Settles when the tower is loaded; rejects where it cannot be, as for a model that sees no pictures. */
  get ready(): Promise<TowerInfo> {
    return this.#host.ready;
  }

  get state(): ManagerState {
    return this.#host.state;
  }

  /** Properties of the tower as it runs, or ran last; null: it is not loaded yet. */
  get info(): TowerInfo | null {
    return this.#host.infos[0]!;
  }

  /**
   * Computes the rows of pictures for the prompt of their model, [rows x rowWidth] each, in their order. An aborted signal rejects at once
   * with its reason.
   *
   * @throws QueueFullError, HostClosedError at once; rejects with a RequestError for a picture that the tower does not see, and where the
   * engine fails
   */
  see(pictures: readonly TowerPicture[], signal?: AbortSignal): Promise<Float32Array[]> {
    this.#host.requireRoom();
    signal?.throwIfAborted();
    if (pictures.length === 0) return Promise.resolve([]);
    return new Promise((resolve, reject) => {
      const wrong = this.info && whyInvalid(pictures, this.info);
      if (wrong) {
        reject(new RequestError(wrong, { kind: 'invalid' }));
        return;
      }
      const entry: Entry = {
        pictures,
        lengths: pictures.map(({ grid }) => grid.rows * grid.columns),
        taken: 0,
        rows: pictures.map(() => null),
        missing: pictures.length,
        hasStarted: false,
        release: null,
        resolve,
        fail: reject,
      };
      this.#host.submit(entry, signal);
    });
  }

  /** Takes no more requests, lets those that were taken end, and ends the worker. May be called again, to abort. */
  close(options?: CloseOptions): Promise<void> {
    return this.#host.close(options);
  }

  #start(info: TowerInfo): void {
    const { maxPatches: maxNumTokens, maxPictures: maxNumSequences } = info.limits;
    this.#former.limits = { maxNumTokens, maxNumSequences };
    for (const entry of [...this.#host.entries()]) {
      const wrong = whyInvalid(entry.pictures, info);
      if (wrong !== null) this.#host.fail(entry, new RequestError(wrong, { kind: 'invalid' }));
    }
  }

  #deliver({ rows, errors, forwardMs }: TowerAnswer, batch: Batch): void {
    const { config, rowWidth } = this.info!;
    let end = 0;
    let patches = 0;
    const advanced = new Set<Entry>();
    for (const [i, { work, index }] of batch.entries()) {
      patches += work.lengths[index]!;
      const begin = end;
      end += pictureRows(config, work.pictures[index]!.grid) * rowWidth;
      if (!this.#host.has(work)) continue;
      const error = errors[i];
      if (error) {
        this.#host.fail(work, new RequestError(error));
        continue;
      }
      // A picture alone is not copied.
      work.rows[index] = batch.length === 1 ? rows : rows.slice(begin, end);
      work.missing--;
      advanced.add(work);
    }
    for (const work of advanced) this.#advance(work);
    this.#host.tell('onBatch', () => this.#options.onBatch?.({ pictures: batch.length, patches, forwardMs }));
  }

  /** Ends a request with its last picture. */
  #advance(work: Entry): void {
    if (!this.#host.has(work) || work.missing > 0) return;
    this.#host.settle(work);
    work.resolve(work.rows as Float32Array[]);
  }
}

/** Why a picture would make the executor refuse its whole batch; null: all are valid. */
function whyInvalid(pictures: readonly TowerPicture[], { config, limits }: TowerInfo): string | null {
  for (const { patches, grid } of pictures) {
    const wrong = whyUnseen(config, grid);
    if (wrong !== null) return wrong;
    const count = grid.rows * grid.columns;
    if (count > limits.maxPatches)
      return `A picture has ${count} patches; up to ${limits.maxPatches} are taken.`;
    if (patches.length !== count * config.patchWidth)
      return `A picture of ${grid.rows} x ${grid.columns} patches has ${patches.length} numbers; ${count * config.patchWidth} are expected.`;
  }
  return null;
}
