import { ErrorReporter } from '../base/error-reporter.js';
import { tellGuarded } from '../base/guarded-calls.js';
import { onAbort } from '../base/on-abort.js';
import type {
  EncoderAnswer,
  EncoderCommand,
  EncoderInfo,
  EncoderSequence,
} from '../callbacks/encoder-messages.js';
import type { ManagerState } from '../callbacks/gpt-manager-options.js';
import {
  DEFAULT_TERMINATE_TIMEOUT_MS,
  DEFAULT_WATCHDOG_TIMEOUT_MS,
} from '../callbacks/options/optional-params.js';
import type { WorkerRestartOptions } from '../callbacks/restart-policy.js';
import { HostClosedError, QueueFullError, RequestError } from '../callbacks/token-request.js';
import type { EncoderWorkerData } from '../engine/encoder/encoder-worker.js';
import { encoderWorkerScript } from '../engine/encoder/worker-script.js';
import { type EncoderPick, type EncoderWork, takeEncoderBatch } from '../scheduler/encoder-scheduler.js';
import { type CloseOptions, DEFAULT_MAX_QUEUE_SIZE } from './in-process-host.js';
import { openLink } from './links/open-link.js';
import { WorkerSupervisor } from './worker-supervisor.js';

export interface EncoderHostOptions extends Omit<EncoderWorkerData, 'encoderModule'> {
  encoderModule?: string | URL | undefined;
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

/** Size of a batch and duration of its forward. */
export interface EncoderBatch {
  sequences: number;
  tokens: number;
  forwardMs: number;
}

/** A request from submission to its last row. */
interface Entry extends EncoderWork {
  sequences: readonly EncoderSequence[];
  rows: (Float32Array | null)[];
  missing: number;
  /** True once the worker was given a part of the request. */
  hasStarted: boolean;
  resolve(rows: Float32Array[]): void;
  reject(error: unknown): void;
  release(): void;
}

/**
 * Batches given to the worker at once: one that it computes and one that waits, so that it never waits for this thread.
 */
const BATCHES_AHEAD = 2;

/**
 * An encoder in a worker of its own, a thread or a process. Batches are formed here, from whatever waits when the
 * worker can take another: requests join and leave between two batches.
 *
 *   encode -> waiting requests -> takeEncoderBatch -> worker -> rows -> each request's promise, with its last row
 *
 * Should the worker die, requests of which it had a part fail with a RequestError; the others go to the next worker, or
 * fail with a HostClosedError where there is no next one.
 */
export class EncoderHost {
  /** Resolves when the encoder is loaded; rejects if it cannot be. */
  readonly ready: Promise<EncoderInfo>;
  readonly #options: EncoderHostOptions;
  readonly #errors: ErrorReporter;
  readonly #supervisor: WorkerSupervisor<EncoderInfo, EncoderAnswer, EncoderCommand>;
  /** Requests in order of arrival, until their last row. */
  readonly #entries = new Set<Entry>();
  /** Batches given to the worker, oldest first. */
  #posted: EncoderPick<Entry>[][] = [];
  #state: ManagerState = 'starting';
  #failure: Error | null = null;
  #info: EncoderInfo | null = null;
  #isClosed = false;
  #isScheduled = false;
  #onEmpty: (() => void)[] = [];
  readonly #ended: Promise<void>;
  #resolveReady!: (info: EncoderInfo) => void;
  #rejectReady!: (error: Error) => void;
  #resolveEnded!: () => void;

  constructor(options: EncoderHostOptions) {
    this.#options = options;
    this.#errors = new ErrorReporter(options.onError);
    this.ready = new Promise((resolve, reject) => {
      this.#resolveReady = resolve;
      this.#rejectReady = reject;
    });
    this.ready.catch(() => {}); // callers who await `ready` hear of it; the others need not
    this.#ended = new Promise((resolve) => {
      this.#resolveEnded = resolve;
    });
    const { enginePath, params, encoderModule = null, isolate = false } = options;
    const { watchdogTimeoutMs = DEFAULT_WATCHDOG_TIMEOUT_MS } = options;
    const data: EncoderWorkerData = {
      enginePath,
      params,
      encoderModule: encoderModule && String(encoderModule),
    };
    this.#supervisor = new WorkerSupervisor<EncoderInfo, EncoderAnswer, EncoderCommand>({
      link: (events) => openLink(encoderWorkerScript(), data, events, { isolate, watchdogTimeoutMs }),
      restart: options.workerRestart ?? {},
      watchdogTimeoutMs,
      terminateTimeoutMs: options.terminateTimeoutMs ?? DEFAULT_TERMINATE_TIMEOUT_MS,
      isAwaited: () => this.#posted.length > 0,
      onReady: (_, info) => this.#start(info),
      onMessage: (message) => {
        if (message.type === 'rows') this.#receive(message);
      },
      onLost: (error) => this.#lose(error),
      onEnded: (error) => this.#end(error),
    });
  }

  get state(): ManagerState {
    return this.#state;
  }

  /** Why the state is 'failed' or 'restarting', else null. */
  get failure(): Error | null {
    return this.#failure;
  }

  /** Properties of the encoder as it runs, or ran last; null: it is not loaded yet. */
  get info(): EncoderInfo | null {
    return this.#info;
  }

  /** Workers started after the first one. */
  get restarts(): number {
    return this.#supervisor.restarts;
  }

  /** See GptManager.pid. */
  get pid(): number | null {
    return this.#supervisor.pid;
  }

  /** Number of requests of which the worker has been given nothing. */
  get queued(): number {
    return this.#entries.size - this.running;
  }

  /** Number of requests of which the worker has been given a part. */
  get running(): number {
    let count = 0;
    for (const entry of this.#entries) if (entry.hasStarted) count++;
    return count;
  }

  /**
   * Computes the rows of sequences, in their order. An aborted signal rejects at once with its reason.
   * @throws QueueFullError, HostClosedError at once; rejects with a RequestError for an invalid sequence, and where the
   * engine fails
   */
  encode(sequences: readonly EncoderSequence[], signal?: AbortSignal): Promise<Float32Array[]> {
    if (this.#isClosed || this.#state === 'failed' || this.#state === 'stopped') {
      throw new HostClosedError(this.#failure?.message ?? 'The host is closed and takes no more requests.');
    }
    const maxQueueSize = this.#options.maxQueueSize ?? DEFAULT_MAX_QUEUE_SIZE;
    if (this.#entries.size >= maxQueueSize) throw new QueueFullError(maxQueueSize);
    signal?.throwIfAborted();
    if (sequences.length === 0) return Promise.resolve([]);
    return new Promise((resolve, reject) => {
      let takeBack: (() => void) | undefined;
      const entry: Entry = {
        sequences,
        lengths: sequences.map(({ tokenIds }) => tokenIds.length),
        taken: 0,
        rows: sequences.map(() => null),
        missing: sequences.length,
        hasStarted: false,
        resolve,
        reject,
        release: () => takeBack?.(),
      };
      const wrong = this.#info && whyInvalid(sequences, this.#info);
      if (wrong) {
        reject(new RequestError(wrong, { kind: 'invalid' }));
        return;
      }
      takeBack = signal && onAbort(signal, () => this.#fail(entry, signal.reason));
      this.#entries.add(entry);
      this.#schedule();
    });
  }

  /** Takes no more requests, lets accepted ones end, and ends the worker. A second call may abort what still runs. */
  async close({ abort = false, timeoutMs, terminateAfterMs }: CloseOptions = {}): Promise<void> {
    this.#isClosed = true;
    const timers: NodeJS.Timeout[] = [];
    const cancel = () => {
      if (terminateAfterMs !== undefined) {
        timers.push(
          setTimeout(() => this.#supervisor.terminate('The encoder was closed.'), terminateAfterMs),
        );
      }
      for (const entry of [...this.#entries])
        this.#fail(entry, new HostClosedError('The encoder was closed.'));
    };
    if (abort) cancel();
    else if (timeoutMs !== undefined) timers.push(setTimeout(cancel, timeoutMs));
    if (this.#entries.size > 0) await new Promise<void>((resolve) => this.#onEmpty.push(resolve));
    this.#supervisor.shutdown();
    await this.#ended;
    for (const timer of timers) clearTimeout(timer);
  }

  #start(info: EncoderInfo): void {
    this.#info = info;
    for (const entry of [...this.#entries]) {
      const wrong = whyInvalid(entry.sequences, info);
      if (wrong !== null) this.#fail(entry, new RequestError(wrong, { kind: 'invalid' }));
    }
    this.#setState('running', null);
    this.#resolveReady(info);
    this.#schedule();
  }

  /** Schedules one batch for all requests that come in one turn of the event loop. */
  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      this.#post();
    });
  }

  #post(): void {
    while (this.#state === 'running' && this.#info !== null && this.#posted.length < BATCHES_AHEAD) {
      const picks = takeEncoderBatch([...this.#entries], this.#info.limits);
      if (picks.length === 0) return;
      for (const { work } of picks) work.hasStarted = true;
      const sequences = picks.map(({ work, index }) => work.sequences[index]!);
      if (!this.#supervisor.post({ type: 'batch', sequences })) return;
      this.#posted.push(picks);
    }
  }

  #receive({ rows, errors, forwardMs }: EncoderAnswer): void {
    const picks = this.#posted.shift() ?? [];
    // The worker gets its next batch first; then the requests' own code handles their rows.
    this.#post();
    const width = this.#info!.outputWidth;
    let tokens = 0;
    for (const [i, { work, index }] of picks.entries()) {
      tokens += work.lengths[index]!;
      if (!this.#entries.has(work)) continue;
      const error = errors[i];
      if (error) {
        this.#fail(work, new RequestError(error));
        continue;
      }
      work.rows[index] = rows.slice(i * width, (i + 1) * width);
      if (--work.missing === 0) {
        this.#forget(work);
        work.resolve(work.rows as Float32Array[]);
      }
    }
    const batch = { sequences: picks.length, tokens, forwardMs };
    this.#tell('onBatch', () => this.#options.onBatch?.(batch));
  }

  #fail(entry: Entry, error: unknown): void {
    this.#forget(entry);
    entry.reject(error);
  }

  #forget(entry: Entry): void {
    entry.release();
    this.#entries.delete(entry);
    if (this.#entries.size === 0) for (const resolve of this.#onEmpty.splice(0)) resolve();
  }

  #lose(error: Error): void {
    this.#posted = [];
    for (const entry of [...this.#entries]) {
      if (entry.hasStarted) this.#fail(entry, new RequestError(`The engine failed: ${error.message}`));
    }
    if (this.#state === 'running' || this.#state === 'restarting') this.#setState('restarting', error);
    if (this.#info !== null) this.#errors.report(error);
  }

  #end(error: Error | null): void {
    this.#setState(error === null ? 'stopped' : 'failed', error);
    this.#rejectReady(error ?? new Error('The encoder was closed before it was loaded.'));
    const why = error === null ? 'The encoder was shut down.' : `The engine failed: ${error.message}`;
    for (const entry of [...this.#entries]) this.#fail(entry, new HostClosedError(why));
    this.#resolveEnded();
  }

  #setState(state: ManagerState, failure: Error | null): void {
    if (this.#state === state && this.#failure === failure) return;
    this.#state = state;
    this.#failure = failure;
    this.#tell('onStateChange', () => this.#options.onStateChange?.(state, failure));
  }

  #tell(callback: string, call: () => unknown): void {
    tellGuarded({ callback }, call, (error) => this.#errors.report(error));
  }
}

/** Why a sequence would make the native executor refuse its whole batch; null: it is valid. */
function whyInvalid(
  sequences: readonly EncoderSequence[],
  { limits, vocabSize, tokenTypes }: EncoderInfo,
): string | null {
  for (const [i, sequence] of sequences.entries()) {
    const { tokenIds, tokenTypes: types } = sequence;
    const { length } = tokenIds;
    if (length < 1 || length > limits.maxSeqLen) {
      return `Sequence ${i} has ${length} tokens; 1 to ${limits.maxSeqLen} are taken.`;
    }
    const token = tokenIds.find((id) => id < 0 || id >= vocabSize);
    if (token !== undefined) return `Sequence ${i} has the token ${token}; the vocabulary has ${vocabSize}.`;
    if (types === null) continue;
    const type = types.find((one) => one < 0 || one >= tokenTypes);
    if (type !== undefined || types.length !== length) {
      return `Sequence ${i} has ${types.length} token types${type === undefined ? '' : `, ${type} among them`}; ${length} from 0 to ${tokenTypes - 1} are expected.`;
    }
  }
  return null;
}
