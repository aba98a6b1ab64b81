import { Worker } from 'node:worker_threads';
import type { EncodeOptions, TextSegment, Tokenizer, TokenizerSourceFiles } from './tokenizer.js';
import { TokenizerError } from './tokenizer-json.js';

/** Where a worker gets its tokenizer: from a folder, which costs the main thread nothing, or from a copy. */
export type TokenizerSource = { directory: string } | { files: TokenizerSourceFiles };

export interface TokenizerPoolOptions {
  /** Threads at most; each is started when it is first needed. Default 1. */
  workers?: number;
  /**
   * Texts longer than this many UTF-16 units go to a worker. Default 8192: some 10 ms of work for prose, ten times
   * that for one endless word.
   */
  threshold?: number;
  /** Texts that may wait or be in work at a time. Default 256. */
  maxJobs?: number;
}

/** More long texts at a time than the pool takes: try again later. */
export class TokenizerBusyError extends Error {
  override name = 'TokenizerBusyError';
}

export interface TokenizerJob {
  segments: readonly TextSegment[];
  addSpecialTokens: boolean;
}

export type TokenizerReply = { tokens: Int32Array } | { error: string };

interface PendingJob extends TokenizerJob {
  resolve(tokens: Int32Array): void;
  reject(error: Error): void;
}

interface PoolWorker {
  thread: Worker;
  job: PendingJob | null;
}

/**
 * Encodes short texts at once and long ones in worker threads, so that the thread that serves HTTP is never busy with
 * one prompt for long. The token ids are the same either way.
 */
export class TokenizerPool {
  readonly #tokenizer: Tokenizer;
  readonly #source: TokenizerSource;
  readonly #maxWorkers: number;
  readonly #threshold: number;
  readonly #maxJobs: number;
  readonly #workers = new Set<PoolWorker>();
  readonly #waiting: PendingJob[] = [];
  #closed = false;

  constructor(tokenizer: Tokenizer, source: TokenizerSource, options: TokenizerPoolOptions = {}) {
    this.#tokenizer = tokenizer;
    this.#source = source;
    this.#maxWorkers = Math.max(1, options.workers ?? 1);
    this.#threshold = options.threshold ?? 8192;
    this.#maxJobs = options.maxJobs ?? 256;
  }

  /** Like Tokenizer.encode. @throws TokenizerBusyError when too many long texts are waiting. */
  async encode(text: string, options: EncodeOptions = {}): Promise<Int32Array> {
    const { addSpecialTokens = true, allowSpecial = true } = options;
    return this.encodeSegments([{ text, special: allowSpecial }], { addSpecialTokens });
  }

  /** Like Tokenizer.encodeSegments. @throws TokenizerBusyError when too many long texts are waiting. */
  async encodeSegments(
    segments: readonly TextSegment[],
    options: { addSpecialTokens?: boolean } = {},
  ): Promise<Int32Array> {
    const addSpecialTokens = options.addSpecialTokens ?? false;
    const length = segments.reduce((sum, segment) => sum + segment.text.length, 0);
    if (length <= this.#threshold) return this.#tokenizer.encodeSegments(segments, { addSpecialTokens });
    if (this.#closed) throw new TokenizerError('The tokenizer pool is closed.');
    if (this.jobs >= this.#maxJobs) {
      throw new TokenizerBusyError(
        `${this.jobs} long texts are being tokenized, the limit is ${this.#maxJobs}.`,
      );
    }
    return new Promise((resolve, reject) => {
      this.#waiting.push({ segments, addSpecialTokens, resolve, reject });
      this.#dispatch();
    });
  }

  /** Long texts that wait or are in work. */
  get jobs(): number {
    let inWork = 0;
    for (const worker of this.#workers) if (worker.job !== null) inWork++;
    return this.#waiting.length + inWork;
  }

  /** Fails what is still waiting or in work and ends the threads. */
  async close(): Promise<void> {
    this.#closed = true;
    const error = new TokenizerError('The tokenizer pool was closed before the text was encoded.');
    for (const job of this.#waiting.splice(0)) job.reject(error);
    const workers = [...this.#workers];
    this.#workers.clear();
    for (const worker of workers) worker.job?.reject(error);
    await Promise.all(workers.map((worker) => worker.thread.terminate()));
  }

  #dispatch(): void {
    while (this.#waiting.length > 0) {
      const worker = this.#idleWorker();
      if (worker === null) return;
      const job = this.#waiting.shift()!;
      worker.job = job;
      worker.thread.ref();
      const message: TokenizerJob = { segments: job.segments, addSpecialTokens: job.addSpecialTokens };
      worker.thread.postMessage(message);
    }
  }

  #idleWorker(): PoolWorker | null {
    for (const worker of this.#workers) if (worker.job === null) return worker;
    return this.#workers.size < this.#maxWorkers ? this.#startWorker() : null;
  }

  #startWorker(): PoolWorker {
    const thread = new Worker(new URL('./tokenizer-worker.js', import.meta.url), {
      workerData: this.#source,
    });
    const worker: PoolWorker = { thread, job: null };
    this.#workers.add(worker);
    thread.on('message', (reply: TokenizerReply) => {
      const job = worker.job;
      worker.job = null;
      // An idle thread does not keep the process alive.
      thread.unref();
      if (job !== null) settle(job, reply);
      this.#dispatch();
    });
    thread.on('error', (error) => this.#lose(worker, error));
    thread.on('exit', (code) => this.#lose(worker, new Error(`exit code ${code}`)));
    return worker;
  }

  /** A dead thread fails its own text only; the next one gets a new thread. */
  #lose(worker: PoolWorker, reason: unknown): void {
    if (!this.#workers.delete(worker)) return;
    const text = reason instanceof Error ? reason.message : String(reason);
    worker.job?.reject(new TokenizerError(`A tokenizer thread ended: ${text}.`, { cause: reason }));
    worker.job = null;
    this.#dispatch();
  }
}

function settle(job: PendingJob, reply: TokenizerReply): void {
  if ('tokens' in reply) job.resolve(reply.tokens);
  else job.reject(new TokenizerError(reply.error));
}
