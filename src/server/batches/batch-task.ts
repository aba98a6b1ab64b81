import { setTimeout as delay } from 'node:timers/promises';
import { StoreError, TakenOverError } from '../../../base/store-errors.js';
import { type LineRules, parseBatchLine } from '../../batch/batch-line.js';
import { plus } from '../../batch/batch-usage.js';
import { type Answer, type BatchCounts, errorLine, type Lines, runBatch } from '../../batch/run-batch.js';
import type { Slots } from '../../batch/slots.js';
import { splitLines } from '../../batch/split-lines.js';
import { NOTHING } from '../files/begun-content.js';
import { fileNotFound } from '../files/file-errors.js';
import { type FileStore, nowSeconds } from '../files/file-store.js';
import { ApiError, toApiError } from '../web/errors.js';
import type { ServerLog } from '../web/server-log.js';
import { AnswerFiles, type AnswersSoFar, answersSoFar } from './answer-files.js';
import { type Batch, type BatchFault, hasEnded, inState } from './batch-object.js';
import type { BatchStore } from './batch-store.js';
import { validateInput } from './validate-input.js';

/** What all batches share. */
export interface BatchServices {
  files: FileStore;
  store: BatchStore;
  log: ServerLog;
  /** Places for readings of a whole input without asking, for batches that run, and for their requests. */
  slots: { readings: Slots; batches: Slots; requests: Slots };
  /** What the lines of a batch have to be. */
  rulesOf(batch: Batch): LineRules;
  /** Resolves when there are models to ask. */
  started: Promise<void>;
  /** Aborted where the server ends: requests under way are waited for, and no others are begun. */
  pause: AbortSignal;
}

/** Milliseconds after which a store that could not be reached is tried again. */
const AWAY_MS = 1_000;

/** Why a batch ends before its requests are answered. */
class EarlyEnd {
  readonly status: 'cancelled' | 'expired';

  constructor(status: 'cancelled' | 'expired') {
    this.status = status;
  }
}

const NOT_ASKED = {
  cancelled: {
    code: 'batch_cancelled',
    message: 'The batch was cancelled before this request was answered.',
  },
  expired: {
    code: 'batch_expired',
    message: 'This request could not be answered before the completion window of the batch had expired.',
  },
} as const;

/**
 * A batch that has not ended. What it has done is in its files and its record, so that another process can
 * continue it from any point: a request is asked again only where its answer was not written.
 *
 *   validating -> in_progress -> finalizing -> completed, or expired
 *       |              '-> cancelling -> cancelled
 *       '-> failed: the input is at fault, or the answers cannot be written
 */
export class BatchTask {
  readonly done: Promise<void>;
  readonly #services: BatchServices;
  readonly #batch: Batch;
  readonly #answer: Answer;
  readonly #stop = new AbortController();
  readonly #signal: AbortSignal;
  readonly #letGo: () => void;

  constructor(services: BatchServices, batch: Batch, answer: Answer) {
    this.#services = services;
    this.#batch = batch;
    this.#answer = answer;
    this.#signal = AbortSignal.any([this.#stop.signal, services.pause]);
    this.#letGo = services.files.use(batch.inputFileId);
    if (batch.status === 'cancelling') this.cancel();
    this.done = this.#live();
  }

  /** Ends the batch with the answers that it has. */
  cancel(): void {
    this.#stop.abort(new EarlyEnd('cancelled'));
  }

  /** Drops the requests under way, for another process to ask. */
  drop(): void {
    this.#stop.abort(this.#services.pause.reason);
  }

  /** Another process has the batch now. */
  takenOver(): void {
    this.#stop.abort(new TakenOverError('Another server has taken the batch over.'));
  }

  async #live(): Promise<void> {
    const { store, log } = this.#services;
    const { id, expiresAt } = this.#batch;
    const expire = () => this.#stop.abort(new EarlyEnd('expired'));
    const timer = setTimeout(expire, Math.max(0, 1000 * (expiresAt - nowSeconds()))).unref();
    try {
      while (!(await this.#ranUnlessAway())) {
        await delay(AWAY_MS);
        if (this.#services.pause.aborted || isLeft(this.#stop.signal.reason)) return;
      }
    } catch (error) {
      if (isLeft(error) || this.#services.pause.aborted) return;
      log.error({ err: error, batch: id }, 'batch failed');
      await this.#end(this.#failed([faultOf(error)])).catch(() => {});
    } finally {
      clearTimeout(timer);
      this.#letGo();
      const { status, counts } = store.latest(this.#batch);
      const { total, completed, failed } = counts;
      log.info({ batch: id, status, total, completed, failed }, 'batch');
    }
  }

  /** False where the store could not be reached: the work done is kept, and the batch continues from it. */
  async #ranUnlessAway(): Promise<boolean> {
    try {
      await this.#run();
      return true;
    } catch (error) {
      if (isAway(error)) return false;
      throw error;
    }
  }

  /** The batch has ended, and does not need its input any more. */
  #end(batch: Batch): Promise<void> {
    this.#letGo();
    return this.#services.store.put(batch);
  }

  get #latest(): Batch {
    return this.#services.store.latest(this.#batch);
  }

  #failed(faults: readonly BatchFault[]): Batch {
    return { ...inState(this.#latest, 'failed', nowSeconds()), faults };
  }

  async #run(): Promise<void> {
    const { store } = this.#services;
    // Only writing its end failed, or it was written unconfirmed: what others see of it must stay.
    if (hasEnded(this.#latest)) return this.#end(this.#latest);
    let early: EarlyEnd | null = null;
    try {
      if (this.#latest.status === 'validating' && !(await this.#validate())) return;
    } catch (error) {
      if (!(error instanceof EarlyEnd)) throw error;
      // Nothing has been asked, and how much there is to ask is not known.
      await this.#end(inState(this.#latest, error.status, nowSeconds()));
      return;
    }
    const { files } = this.#services;
    await files.reopen(this.#batch.outputId);
    await files.reopen(this.#batch.errorsId);
    const before = await answersSoFar(files, this.#batch);
    const answers = await AnswerFiles.open(files, this.#batch, before);
    let fault: BatchFault | null = null;
    let published: Awaited<ReturnType<AnswerFiles['publish']>>;
    try {
      try {
        await this.#answerAll(answers, before);
      } catch (error) {
        if (error === this.#services.pause.reason || isLeft(error) || isAway(error)) throw error;
        if (error instanceof EarlyEnd) early = error;
        else fault = this.#noted(error);
      }
      // It may have been cancelled after its last answer.
      if (early === null && fault === null && this.#latest.status === 'cancelling')
        early = new EarlyEnd('cancelled');
      if (early?.status !== 'cancelled' && fault === null)
        await store.put(inState(this.#latest, 'finalizing', nowSeconds()));
      // Another server may have received the cancellation meanwhile.
      if (early === null && this.#latest.status === 'cancelling') early = new EarlyEnd('cancelled');
      if (early !== null && !(await this.#tellRest(early, answers.errors)) && early.status === 'expired')
        early = null;
      await answers.close();
      published = await answers.publish();
    } catch (error) {
      await answers.close().catch(() => {});
      answers.letGo();
      throw error;
    }
    const ended =
      fault === null
        ? inState(this.#latest, early?.status ?? 'completed', nowSeconds())
        : this.#failed([fault]);
    await this.#end({ ...ended, ...published });
  }

  /** False where the input is at fault, which ends the batch. */
  async #validate(): Promise<boolean> {
    const { store, slots, rulesOf } = this.#services;
    const release = await slots.readings.take(this.#signal);
    try {
      const { total, faults } = await validateInput(await this.#input(), rulesOf(this.#batch), this.#signal);
      const counted = { ...this.#latest, counts: { ...this.#latest.counts, total } };
      this.#signal.throwIfAborted();
      store.note(counted);
      if (faults.length > 0) await this.#end(this.#failed(faults));
      else await store.put(inState(counted, 'in_progress', nowSeconds()));
      return faults.length === 0;
    } finally {
      release();
    }
  }

  /** The bytes of its input. @throws ApiError where it is gone */
  async #input(): Promise<AsyncIterable<Buffer>> {
    const { files } = this.#services;
    const { inputFileId } = this.#batch;
    const file = await files.find(inputFileId);
    if (file === null) throw fileNotFound(inputFileId);
    const content = file.bytes === 0 ? NOTHING : await files.content(inputFileId, file.bytes);
    if (content === null) throw fileNotFound(inputFileId);
    return content;
  }

  async #answerAll({ output, errors }: AnswerFiles, before: AnswersSoFar): Promise<void> {
    const { slots, rulesOf, started, pause } = this.#services;
    this.#count(before, null);
    const release = await slots.batches.take(this.#signal, this.#batch.owner);
    try {
      await unlessAborted(started, this.#signal);
      await runBatch({
        input: await this.#input(),
        output,
        errors,
        answered: before,
        answer: this.#answer,
        slots: slots.requests,
        rules: rulesOf(this.#batch),
        signal: this.#stop.signal,
        pause,
        onProgress: (counts) => this.#count(before, counts),
      });
    } finally {
      release();
    }
  }

  #count({ output, errors }: AnswersSoFar, now: BatchCounts | null): void {
    const usage = plus(output.usage, errors.usage);
    const { total } = this.#latest.counts;
    const counts = {
      total,
      completed: output.answers + (now?.completed ?? 0),
      failed: errors.answers + (now?.failed ?? 0),
      usage: now === null ? usage : plus(usage, now.usage),
    };
    this.#services.store.note({ ...this.#latest, counts });
  }

  /**
   * Writes an error for each request without an answer. One batch at a time: a thousand may be cancelled in one moment, and
   * each holds a line of its input. @returns true where there was one
   */
  async #tellRest(early: EarlyEnd, errors: Lines): Promise<boolean> {
    const { slots, pause } = this.#services;
    const release = await slots.readings.take(pause);
    try {
      return await this.#tellEachOfRest(early, errors);
    } finally {
      release();
    }
  }

  async #tellEachOfRest({ status }: EarlyEnd, errors: Lines): Promise<boolean> {
    const { files, rulesOf } = this.#services;
    const rules = rulesOf(this.#batch);
    const { customIds } = await answersSoFar(files, this.#batch);
    let isAny = false;
    for await (const line of splitLines(await this.#input(), rules.maxLineBytes)) {
      const read = parseBatchLine(line, rules);
      if (read === null || 'message' in read || customIds.has(read.customId)) continue;
      isAny = true;
      await errors.write(errorLine(read.customId, NOT_ASKED[status]));
    }
    return isAny;
  }

  #noted(error: unknown): BatchFault {
    this.#services.log.error({ err: error, batch: this.#batch.id }, 'batch failed');
    return faultOf(error);
  }
}

/** True where another process has the batch. */
function isLeft(error: unknown): boolean {
  return error instanceof TakenOverError;
}

function isAway(error: unknown): boolean {
  return error instanceof StoreError && error.kind === 'away';
}

function unlessAborted(promise: Promise<void>, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
    promise.then(resolve, reject);
  });
}

/** A client's view of an error: texts of unexpected ones stay in the log. */
function faultOf(error: unknown): BatchFault {
  const known = error instanceof ApiError ? error : error instanceof StoreError ? toApiError(error) : null;
  const message = known?.message ?? 'The server failed to run this batch.';
  return { code: known?.apiCode ?? 'internal_error', message, line: null, param: null };
}
