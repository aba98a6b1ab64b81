import {
  type EncoderAnswer,
  type EncoderCommand,
  type EncoderInfo,
  type EncoderSequence,
  givesTokens,
  valuesOf,
} from '../callbacks/encoder-messages.js';
import type { ManagerState } from '../callbacks/gpt-manager-options.js';
import { type MissingRanks, type RanksOptions, whyHeld } from '../callbacks/ranks-options.js';
import type { WorkerRestartOptions } from '../callbacks/restart-policy.js';
import { RequestError } from '../callbacks/token-request.js';
import type { EncoderWorkerData } from '../engine/encoder/encoder-worker.js';
import { encoderWorkerScript } from '../engine/encoder/worker-script.js';
import type { EncoderPick, EncoderWork } from '../scheduler/tokens/encoder-scheduler.js';
import type { BatchEntry } from './batch/batch-duties.js';
import { BatchHost } from './batch/batch-host.js';
import type { OpenGroup } from './batch/batch-host-options.js';
import { ItemsFormer } from './batch/items-former.js';
import { type CloseOptions, DEFAULT_MAX_QUEUE_SIZE } from './in-process-host.js';
import { launchGroup, leadJoined } from './ranks/lead-group.js';

export interface EncoderHostOptions extends Omit<EncoderWorkerData, 'encoderModule' | 'seat'> {
  encoderModule?: string | URL | undefined;
  /** Its place where the other ranks of the encoder are started elsewhere: that of rank 0. */
  ranks?: RanksOptions | undefined;
  /** See OptionalParams.rankTimeoutMs. */
  rankTimeoutMs?: number | undefined;
  /** Number of requests that may wait or run before `encode` throws QueueFullError; default 256. */
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
  onBatch?: (batch: EncoderBatch) => void;
}

/** Options of one request. */
export interface EncodeOptions {
  /** Signal whose abort ends the request. */
  signal?: AbortSignal | undefined;
  /** Called after each batch that had sequences of the request, with the number of its rows that are done. */
  onDone?: ((rows: number) => void) | undefined;
}

/** Size of a batch and duration of its forward. */
export interface EncoderBatch {
  sequences: number;
  tokens: number;
  forwardMs: number;
}

/** A request from submission to its last row. */
interface Entry extends EncoderWork, BatchEntry {
  sequences: readonly EncoderSequence[];
  rows: (Float32Array | null)[];
  missing: number;
  onDone: EncodeOptions['onDone'];
  resolve(rows: Float32Array[]): void;
}

type Batch = readonly EncoderPick<Entry>[];

/** Batches that the worker has: one that it computes and one that waits, so that it never waits for this thread. */
const BATCHES_AHEAD = 2;

/**
 * An encoder in a worker of its own, a thread or a process, for this process: a BatchHost whose batches `takeEncoderBatch` forms, from
 * whatever waits when the worker can take another. Requests join and leave between two batches.
 *
 *   encode -> waiting requests -> takeEncoderBatch -> worker -> rows -> each request's promise, with its last row
 *
 * Should the worker die, requests of which it computed a part fail with a RequestError; the others go to the next worker, or
 * fail with a HostClosedError where there will be none.
 */
export class EncoderHost {
  readonly #options: EncoderHostOptions;
  readonly #former = new ItemsFormer<Entry>();
  readonly #host: BatchHost<Entry, Batch, EncoderInfo, EncoderAnswer, EncoderCommand>;

  constructor(options: EncoderHostOptions) {
    this.#options = options;
    const { enginePath, params, encoderModule = null } = options;
    const data: EncoderWorkerData = {
      enginePath,
      params,
      encoderModule: encoderModule && String(encoderModule),
      seat: null,
    };
    const { isolate, workerRestart, watchdogTimeoutMs, terminateTimeoutMs, onStateChange, onError } = options;
    this.#host = new BatchHost(
      {
        subject: 'The encoder',
        script: encoderWorkerScript(),
        data: () => data,
        openGroup: groupOpener(options, (missing) => this.#noteMissing(missing)),
        batchesAhead: BATCHES_AHEAD,
        maxEntries: options.maxQueueSize ?? DEFAULT_MAX_QUEUE_SIZE,
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
          command: { type: 'batch', sequences: batch.map(({ work, index }) => work.sequences[index]!) },
          transfer: [],
        }),
        endsBatch: () => true,
        deliver: (answer, batch) => this.#deliver(answer, batch ?? []),
        lostError: (error) => new RequestError(`The engine failed: ${error.message}`),
      },
    );
  }

  /** Settles when the encoder is loaded; rejects where it cannot be. */
  get ready(): Promise<EncoderInfo> {
    return this.#host.ready;
  }

  get state(): ManagerState {
    return this.#host.state;
  }

  /** Why the state is 'failed' or 'restarting', else null. */
  get failure(): Error | null {
    return this.#host.failure;
  }

  /** Properties of the encoder as it runs, or ran last; null: it is not loaded yet. */
  get info(): EncoderInfo | null {
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

  /**
   * Computes the rows of sequences, or what they ask for of their tokens, in their order. An aborted signal rejects at once with its reason.
   * @throws QueueFullError, HostClosedError at once; rejects with a RequestError for an invalid sequence, and where the
   * engine fails
   */
  encode(
    sequences: readonly EncoderSequence[],
    { signal, onDone }: EncodeOptions = {},
  ): Promise<Float32Array[]> {
    this.#host.requireRoom();
    signal?.throwIfAborted();
    if (sequences.length === 0) return Promise.resolve([]);
    return new Promise((resolve, reject) => {
      const wrong = this.info && whyInvalid(sequences, this.info);
      if (wrong) {
        reject(new RequestError(wrong, { kind: 'invalid' }));
        return;
      }
      const entry: Entry = {
        sequences,
        lengths: sequences.map(({ tokenIds }) => tokenIds.length),
        taken: 0,
        rows: sequences.map(() => null),
        missing: sequences.length,
        hasStarted: false,
        release: null,
        onDone,
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

  #noteMissing(missing: MissingRanks): void {
    this.#host.hold(whyHeld(missing));
    this.#host.tell('ranks.onMissing', () => this.#options.ranks?.onMissing?.(missing));
  }

  #start(info: EncoderInfo): void {
    this.#former.limits = info.limits;
    for (const entry of [...this.#host.entries()]) {
      const wrong = whyInvalid(entry.sequences, info);
      if (wrong !== null) this.#host.fail(entry, new RequestError(wrong, { kind: 'invalid' }));
    }
  }

  #deliver({ rows, errors, forwardMs }: EncoderAnswer, batch: Batch): void {
    const info = this.info!;
    let end = 0;
    let tokens = 0;
    const advanced = new Set<Entry>();
    for (const [i, { work, index }] of batch.entries()) {
      tokens += work.lengths[index]!;
      const begin = end;
      end += valuesOf(work.sequences[index]!, info);
      if (!this.#host.has(work)) continue;
      const error = errors[i];
      if (error) {
        this.#host.fail(work, new RequestError(error));
        continue;
      }
      work.rows[index] = rows.slice(begin, end);
      work.missing--;
      advanced.add(work);
    }
    for (const work of advanced) this.#advance(work);
    const told = { sequences: batch.length, tokens, forwardMs };
    this.#host.tell('onBatch', () => this.#options.onBatch?.(told));
  }

  /** Tells a request of its new rows, and ends it with the last one. */
  #advance(work: Entry): void {
    if (!this.#host.has(work)) return;
    const done = work.sequences.length - work.missing;
    if (work.onDone) this.#host.tell('onProgress', () => work.onDone!(done));
    if (work.missing > 0) return;
    this.#host.settle(work);
    work.resolve(work.rows as Float32Array[]);
  }
}

/** How the ranks of the encoder are opened, with rank 0 in its worker. */
function groupOpener(
  { enginePath, params, ranks, rankTimeoutMs }: EncoderHostOptions,
  onMissing: (missing: MissingRanks) => void,
): OpenGroup {
  const { tensorParallelSize, pipelineParallelSize } = params;
  const group = { enginePath, tensorParallelSize, pipelineParallelSize, rankTimeoutMs };
  let isBack = false;
  return (events, open) => {
    if (ranks === undefined) return launchGroup(group, events, (seat, ofWorker) => open({ seat }, ofWorker));
    const options = { ...group, ranks, isBack };
    isBack = true;
    const more = { onGroupMessage: () => {}, onMissing };
    return leadJoined(options, { ...events, ...more }, (seat, ofWorker) => open({ seat }, ofWorker));
  };
}

/** Why a sequence would make the native executor refuse its whole batch; null: it is valid. */
function whyInvalid(
  sequences: readonly EncoderSequence[],
  { limits, vocabSize, tokenTypes, head }: EncoderInfo,
): string | null {
  for (const [i, sequence] of sequences.entries()) {
    const { tokenIds, tokenTypes: types, output } = sequence;
    const { length } = tokenIds;
    if (length < 1 || length > limits.maxSeqLen) {
      return `Sequence ${i} has ${length} tokens; 1 to ${limits.maxSeqLen} are taken.`;
    }
    const token = tokenIds.find((id) => id < 0 || id >= vocabSize);
    if (token !== undefined) return `Sequence ${i} has the token ${token}; the vocabulary has ${vocabSize}.`;
    if (output !== undefined && !givesTokens(head, output))
      return `Sequence ${i} asks for ${output} of its tokens, of which the model has none.`;
    if (types === null) continue;
    const type = types.find((one) => one < 0 || one >= tokenTypes);
    if (type !== undefined || types.length !== length) {
      return `Sequence ${i} has ${types.length} token types${type === undefined ? '' : `, ${type} among them`}; ${length} from 0 to ${tokenTypes - 1} are expected.`;
    }
  }
  return null;
}
