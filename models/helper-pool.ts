import { type ResourceLimits, Worker } from 'node:worker_threads';
import { requireThreadRoom } from '../base/address-space.js';
import { messageOf } from '../base/error-text.js';
import type { NamedText } from '../base/named-text.js';
import { SkeinError } from '../base/skein-error.js';

export interface HelperPoolOptions<Job = unknown> {
  /** Module of a thread: it says 'ready', then answers each message, a job, with one HelperReply, in order (see answerJobs). */
  script: URL;
  workerData?: unknown;
  /** Threads at most; each is started when it is first needed. Default 1. */
  workers?: number | undefined;
  /** Jobs that may wait or be in work at a time. Default 256. */
  maxJobs?: number | undefined;
  /**
   * A thread that works longer on one job is ended, and the job fails with a HelperTimeError. Counts from when the thread is
   * ready. Default: no limit.
   */
  timeLimitMs?: number | ((job: Job) => number) | undefined;
  /**
   * Milliseconds by which a job lets those that come later go first: long ones wait for short ones, and no longer than this.
   * Default: jobs are done in the order in which they came.
   */
  patienceMs?: ((job: Job) => number) | undefined;
  /** What a thread may have of memory; one that needs more ends, and its job fails with a HelperLostError. */
  resourceLimits?: ResourceLimits | undefined;
}

/** What a job threw, as it crosses: of an error of this package all that it holds, of any other one its words. */
export interface HelperFailure {
  text: NamedText;
  name: string;
  code: string | null;
  /** The fields of the class, such as a limit. */
  held: Readonly<Record<string, unknown>>;
}

export type HelperReply<Result> = { result: Result } | { failure: HelperFailure };

/** First message of a thread. */
export const READY = 'ready';

/** Milliseconds that a thread may take to be ready. */
const START_LIMIT_MS = 60_000;

/** More jobs at a time than the pool takes: try again later. */
export class HelperBusyError extends SkeinError {
  override name = 'HelperBusyError';
  override readonly code = 'SKEIN_HELPER_BUSY';
}

/** A job took longer than it may. */
export class HelperTimeError extends SkeinError {
  override name = 'HelperTimeError';
  override readonly code = 'SKEIN_HELPER_TIME';
}

/** What a job threw in its thread: `name` and `message` are those of the error there, and `failure` is what it was. */
export class HelperError extends SkeinError {
  override readonly code = 'SKEIN_HELPER';
  readonly failure: HelperFailure;

  constructor(failure: HelperFailure) {
    super(failure.text);
    this.name = failure.name;
    this.failure = failure;
  }
}

/** The thread of a job ended, or the pool was closed: the job is not to blame. */
export class HelperLostError extends SkeinError {
  override name = 'HelperLostError';
  override readonly code: `SKEIN_${string}` = 'SKEIN_HELPER_LOST';
}

/** The pool was closed, as whoever owns it meant it to be. */
export class HelperClosedError extends HelperLostError {
  override name = 'HelperClosedError';
  override readonly code = 'SKEIN_HELPER_CLOSED';
}

interface PendingJob<Job, Result> {
  job: Job;
  /** When its turn is, as a time of `performance.now`. */
  dueMs: number;
  resolve(result: Result): void;
  reject(error: Error): void;
}

interface PoolWorker<Job, Result> {
  thread: Worker;
  /** The helper's module is loaded, and it takes jobs as they come. */
  ready: boolean;
  pending: PendingJob<Job, Result> | null;
  timer: NodeJS.Timeout | null;
}

/**
 * Does jobs in threads of its own, one at a time in each, in the order in which they are due: what would otherwise hold up the thread that asks. A job
 * crosses the border by structured clone.
 */
export class HelperPool<Job, Result> {
  readonly #options: HelperPoolOptions<Job>;
  readonly #workers = new Set<PoolWorker<Job, Result>>();
  #waiting: PendingJob<Job, Result>[] = [];
  #closed = false;

  constructor(options: HelperPoolOptions<Job>) {
    this.#options = options;
  }

  /** Jobs that wait or are in work. */
  get jobs(): number {
    let inWork = 0;
    for (const { pending } of this.#workers) if (pending !== null) inWork++;
    return this.#waiting.length + inWork;
  }

  /**
   * @throws HelperError with what the job threw, HelperBusyError, HelperTimeError, HelperLostError; the signal's reason where
   * it was raised: a job that waits is then not begun, and what one brings that runs is dropped.
   */
  run(job: Job, signal?: AbortSignal): Promise<Result> {
    if (this.#closed) return Promise.reject(new HelperClosedError('The pool is closed.'));
    const { maxJobs = 256 } = this.#options;
    if (this.jobs >= maxJobs) {
      return Promise.reject(new HelperBusyError(`${this.jobs} jobs are waiting, the limit is ${maxJobs}.`));
    }
    return new Promise<Result>((resolve, reject) => {
      if (signal?.aborted) {
        reject(signal.reason as Error);
        return;
      }
      const dueMs = performance.now() + (this.#options.patienceMs?.(job) ?? 0);
      const pending: PendingJob<Job, Result> = { job, dueMs, resolve, reject };
      if (signal !== undefined) this.#follow(pending, signal);
      this.#waiting.push(pending);
      this.#dispatch();
    });
  }

  /** Fails what is still waiting or in work and ends the threads. */
  async close(): Promise<void> {
    this.#closed = true;
    const error = new HelperClosedError('The pool was closed before the job was done.');
    for (const { reject } of this.#waiting.splice(0)) reject(error);
    const workers = [...this.#workers];
    this.#workers.clear();
    for (const { pending, timer } of workers) {
      if (timer !== null) clearTimeout(timer);
      pending?.reject(error);
    }
    await Promise.all(workers.map(({ thread }) => thread.terminate()));
  }

  #follow(pending: PendingJob<Job, Result>, signal: AbortSignal): void {
    const drop = () => {
      this.#waiting = this.#waiting.filter((one) => one !== pending);
      reject(signal.reason as Error);
    };
    const { resolve, reject } = pending;
    signal.addEventListener('abort', drop, { once: true });
    const release = () => signal.removeEventListener('abort', drop);
    pending.resolve = (result) => {
      release();
      resolve(result);
    };
    pending.reject = (error) => {
      release();
      reject(error);
    };
  }

  #dispatch(): void {
    while (this.#waiting.length > 0) {
      let worker: PoolWorker<Job, Result> | null;
      try {
        worker = this.#idleWorker();
      } catch (error) {
        // No thread can be started: the others that there are take what waits.
        if (this.#workers.size === 0)
          for (const { reject } of this.#waiting.splice(0)) reject(error as Error);
        return;
      }
      if (worker === null) return;
      const pending = this.#takeNext();
      try {
        worker.thread.postMessage(pending.job);
      } catch (error) {
        // It cannot be cloned.
        pending.reject(error as Error);
        continue;
      }
      worker.pending = pending;
      worker.thread.ref();
      this.#limitTime(worker);
    }
  }

  /** What is due first; of those that are due at once what came first. */
  #takeNext(): PendingJob<Job, Result> {
    const first = this.#waiting.reduce((best, one) => (one.dueMs < best.dueMs ? one : best));
    this.#waiting.splice(this.#waiting.indexOf(first), 1);
    return first;
  }

  /** A thread that is not ready yet has longer: to start on a busy machine is not the job's fault. */
  #limitTime(worker: PoolWorker<Job, Result>): void {
    const { timeLimitMs } = this.#options;
    if (timeLimitMs === undefined || worker.pending === null) return;
    const own = typeof timeLimitMs === 'number' ? timeLimitMs : timeLimitMs(worker.pending.job);
    const limit = worker.ready ? own : Math.max(own, START_LIMIT_MS);
    if (worker.timer !== null) clearTimeout(worker.timer);
    worker.timer = setTimeout(() => this.#giveUp(worker, limit), limit);
  }

  #idleWorker(): PoolWorker<Job, Result> | null {
    for (const worker of this.#workers) if (worker.pending === null) return worker;
    return this.#workers.size < (this.#options.workers ?? 1) ? this.#startWorker() : null;
  }

  #startWorker(): PoolWorker<Job, Result> {
    const { script, workerData, resourceLimits } = this.#options;
    requireThreadRoom();
    const thread = new Worker(script, { workerData, ...(resourceLimits && { resourceLimits }) });
    const worker: PoolWorker<Job, Result> = { thread, ready: false, pending: null, timer: null };
    this.#workers.add(worker);
    thread.on('message', (reply: HelperReply<Result> | typeof READY) => {
      worker.ready = true;
      if (reply === READY) {
        this.#limitTime(worker);
        return;
      }
      const { pending } = worker;
      this.#rest(worker);
      // An idle thread does not keep the process alive.
      thread.unref();
      if ('result' in reply) pending?.resolve(reply.result);
      else pending?.reject(new HelperError(reply.failure));
      this.#dispatch();
    });
    thread.on('error', (error) => this.#lose(worker, messageOf(error)));
    thread.on('exit', (code) => this.#lose(worker, `exit code ${code}`));
    return worker;
  }

  #rest(worker: PoolWorker<Job, Result>): void {
    if (worker.timer !== null) clearTimeout(worker.timer);
    worker.timer = null;
    worker.pending = null;
  }

  #giveUp(worker: PoolWorker<Job, Result>, limitMs: number): void {
    const error = new HelperTimeError(`It took more than ${Math.ceil(limitMs) / 1000} s.`);
    this.#end(worker, error);
    void worker.thread.terminate();
  }

  /** A dead thread fails its own job only; the next one gets a new thread. */
  #lose(worker: PoolWorker<Job, Result>, reason: string): void {
    this.#end(worker, new HelperLostError(`A helper thread ended: ${reason}.`));
  }

  #end(worker: PoolWorker<Job, Result>, error: Error): void {
    if (!this.#workers.delete(worker)) return;
    const { pending } = worker;
    this.#rest(worker);
    pending?.reject(error);
    this.#dispatch();
  }
}
