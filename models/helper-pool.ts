import { type ResourceLimits, Worker } from 'node:worker_threads';
import { requireThreadRoom } from '../base/address-space.js';
import type { ErrorRecord } from '../base/error-record.js';
import { messageOf } from '../base/error-text.js';
import { SkeinError } from '../base/skein-error.js';
import { startHelperProcess } from './helper-process.js';

export interface HelperPoolOptions<Job = unknown, Result = unknown> {
  /**
   * Module of a thread: it posts 'ready', then answers each message, a job, with one HelperReply, in order (see
   * answerJobs).
   */
  script: URL;
  workerData?: unknown;
  /**
   * Processes instead of threads, for code that may end its process, or that has settings of one: they get no worker data, no
   * limits of memory, and the environment of startHelperProcess. Default false.
   */
  processes?: boolean | undefined;
  /** Most threads; each is started when it is first needed. Default 1. */
  workers?: number | undefined;
  /** Most jobs that wait or run at a time. Default 256. */
  maxJobs?: number | undefined;
  /**
   * Milliseconds that a job may run; after that its thread is ended, and the job fails with a HelperTimeError. Counts
   * from when the thread is ready. Default: no limit.
   */
  timeLimitMs?: number | ((job: Job) => number) | undefined;
  /**
   * Milliseconds by which a job lets later ones go first: long jobs wait for short ones, but no longer than this.
   * Default: jobs run in order of arrival.
   */
  patienceMs?: ((job: Job) => number) | undefined;
  /** Memory limits of a thread; one that exceeds them ends, and its job fails with a HelperLostError. */
  resourceLimits?: ResourceLimits | undefined;
  /** Called with the result of a job whose caller no longer waits. */
  onDropped?: ((result: Result) => void) | undefined;
}

export type HelperReply<Result> = { result: Result } | { failure: ErrorRecord };

/** First message of a thread. */
export const READY = 'ready';

/** Milliseconds that a thread may take to become ready. */
const START_LIMIT_MS = 60_000;

/** An error for more jobs at a time than the pool takes: the caller may try again later. */
export class HelperBusyError extends SkeinError {
  override name = 'HelperBusyError';
  override readonly code = 'SKEIN_HELPER_BUSY';
}

/** An error for a job that took longer than it may. */
export class HelperTimeError extends SkeinError {
  override name = 'HelperTimeError';
  override readonly code = 'SKEIN_HELPER_TIME';
}

/**
 * An error for a job that threw in its thread: `name` and `message` are those of its error, `failure` is the whole of
 * it.
 */
export class HelperError extends SkeinError {
  override readonly code = 'SKEIN_HELPER';
  readonly failure: ErrorRecord;

  constructor(failure: ErrorRecord) {
    super(failure.text);
    this.name = failure.name;
    this.failure = failure;
  }
}

/** An error for a job whose thread ended, or whose pool was closed: the job is not to blame. */
export class HelperLostError extends SkeinError {
  override name = 'HelperLostError';
  override readonly code: `SKEIN_${string}` = 'SKEIN_HELPER_LOST';
}

/** An error for a pool that its owner closed. */
export class HelperClosedError extends HelperLostError {
  override name = 'HelperClosedError';
  override readonly code = 'SKEIN_HELPER_CLOSED';
}

interface PendingJob<Job, Result> {
  job: Job;
  /** Time when the job's turn comes, on performance.now's clock. */
  dueMs: number;
  resolve(result: Result): void;
  reject(error: Error): void;
  /** The caller no longer waits for it. */
  isDropped: boolean;
}

/** A thread or a process, as the pool uses it. */
export type HelperThread = Pick<Worker, 'on' | 'postMessage' | 'ref' | 'unref' | 'terminate'>;

interface PoolWorker<Job, Result> {
  thread: HelperThread;
  /** True once the helper's module is loaded and takes jobs. */
  ready: boolean;
  pending: PendingJob<Job, Result> | null;
  timer: NodeJS.Timeout | null;
}

/**
 * Runs jobs in threads of its own, one at a time in each, in the order in which they are due, so that they do not hold
 * up the calling thread. Jobs and results are structured clones.
 */
export class HelperPool<Job, Result> {
  readonly #options: HelperPoolOptions<Job, Result>;
  readonly #workers = new Set<PoolWorker<Job, Result>>();
  #waiting: PendingJob<Job, Result>[] = [];
  #closed = false;
  #starts = 0;

  constructor(options: HelperPoolOptions<Job, Result>) {
    this.#options = options;
  }

  /** Number of jobs that wait or run. */
  get jobs(): number {
    let inWork = 0;
    for (const { pending } of this.#workers) if (pending !== null) inWork++;
    return this.#waiting.length + inWork;
  }

  /** Threads or processes started so far: more than `workers` where some were lost. */
  get starts(): number {
    return this.#starts;
  }

  /**
   * Runs a job. @throws HelperError with the job's error, HelperBusyError, HelperTimeError, HelperLostError; the
   * signal's reason where it was aborted: a waiting job is then not begun, and the result of a running one is dropped.
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
      const pending: PendingJob<Job, Result> = { job, dueMs, resolve, reject, isDropped: false };
      if (signal !== undefined) this.#follow(pending, signal);
      this.#waiting.push(pending);
      this.#dispatch();
    });
  }

  /** Fails all jobs that wait or run, and ends the threads. */
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
      pending.isDropped = true;
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
        // No further thread can be started: existing ones take the waiting jobs.
        if (this.#workers.size === 0)
          for (const { reject } of this.#waiting.splice(0)) reject(error as Error);
        return;
      }
      if (worker === null) return;
      const pending = this.#takeNext();
      try {
        worker.thread.postMessage(pending.job);
      } catch (error) {
        // The job cannot be cloned.
        pending.reject(error as Error);
        continue;
      }
      worker.pending = pending;
      worker.thread.ref();
      this.#limitTime(worker);
    }
  }

  /** Takes the job that is due first; of equal ones the earliest. */
  #takeNext(): PendingJob<Job, Result> {
    const first = this.#waiting.reduce((best, one) => (one.dueMs < best.dueMs ? one : best));
    this.#waiting.splice(this.#waiting.indexOf(first), 1);
    return first;
  }

  /**
   * Limits the time of a worker's job. A thread that is not ready yet gets longer: a slow start on a busy machine is
   * not the job's fault.
   */
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
    const thread = this.#startThread();
    this.#starts++;
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
      if ('result' in reply && pending?.isDropped) this.#options.onDropped?.(reply.result);
      else if ('result' in reply) pending?.resolve(reply.result);
      else pending?.reject(new HelperError(reply.failure));
      this.#dispatch();
    });
    thread.on('error', (error) => this.#lose(worker, messageOf(error)));
    thread.on('exit', (code) => this.#lose(worker, `exit code ${code}`));
    return worker;
  }

  #startThread(): HelperThread {
    const { script, workerData, resourceLimits, processes } = this.#options;
    if (processes) return startHelperProcess(script);
    requireThreadRoom();
    return new Worker(script, { workerData, ...(resourceLimits && { resourceLimits }) });
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
    this.#end(
      worker,
      new HelperLostError(`A helper ${this.#options.processes ? 'process' : 'thread'} ended: ${reason}.`),
    );
  }

  #end(worker: PoolWorker<Job, Result>, error: Error): void {
    if (!this.#workers.delete(worker)) return;
    const { pending } = worker;
    this.#rest(worker);
    pending?.reject(error);
    this.#dispatch();
  }
}
