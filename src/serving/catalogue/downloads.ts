import { messageOf } from '../../../base/error-text.js';
import { asSentence } from '../../../base/sentences.js';
import { HubError } from '../../errors/user-errors.js';
import type { PullProgress } from '../../hub/pull.js';
import { pulledName, type Repository } from '../../hub/repository.js';
import type { ModelPulls } from '../on-demand/model-pulls.js';

/** A download that goes on without the request that began it. */
export interface Download {
  /** ORG/NAME, or ORG/NAME:QUANT. */
  name: string;
  /** Bytes that are here, and bytes of all files; 0 until the hub has said which. */
  doneBytes: number;
  totalBytes: number;
  /** Bytes that came each second so far, without those that were here before. */
  bytesPerSecond: number;
}

interface Running extends Download {
  abort: AbortController;
  beganMs: number;
}

/** Downloads that failed whose reasons are kept. */
const MAX_FAILURES = 50;

/** Downloads in the background, and why the latest of each model failed. */
export class Downloads {
  readonly #pulls: ModelPulls;
  readonly #running = new Map<string, Running>();
  readonly #failures = new Map<string, string>();

  constructor(pulls: ModelPulls) {
    this.#pulls = pulls;
  }

  /** By the beginning. */
  list(): readonly Download[] {
    return [...this.#running.values()];
  }

  /** Why the latest download of a model failed; null: it did not. */
  failureOf(name: string): string | null {
    return this.#failures.get(name) ?? null;
  }

  /** Names of the models whose latest download failed. */
  get failed(): readonly string[] {
    return [...this.#failures.keys()];
  }

  /**
   * Begins to download a model, or goes on with it; resolves as soon as its first bytes come, or it is whole or cancelled.
   * @throws ModelLoadError where too many downloads are under way; HubError
   */
  async begin(repository: Repository): Promise<void> {
    const name = pulledName(repository);
    if (this.#running.has(name)) return;
    const abort = new AbortController();
    const running: Running = {
      name,
      doneBytes: 0,
      totalBytes: 0,
      bytesPerSecond: 0,
      abort,
      beganMs: performance.now(),
    };
    this.#running.set(name, running);
    this.#failures.delete(name);
    let isBegun = () => {};
    const begun = new Promise<void>((resolve) => {
      isBegun = resolve;
    });
    const onProgress = (progress: PullProgress) => {
      note(running, progress);
      isBegun();
    };
    const done = this.#pulls.pull(repository, onProgress, abort.signal).then(
      () => {},
      (error: unknown) => {
        if (abort.signal.aborted) return;
        // What the hub does not have is told to who asked, and is no model of the list.
        if (!(error instanceof HubError && error.fault === 'refused')) this.#fail(name, error);
        throw error;
      },
    );
    const ended = done.finally(() => this.#running.delete(name));
    // Who began it may be gone: its reason is kept.
    ended.catch(() => {});
    await Promise.race([begun, ended]);
  }

  /** Ends a download; what has come is kept. @returns false where there is none */
  cancel(name: string): boolean {
    const running = this.#running.get(name);
    running?.abort.abort(new Error('The download was cancelled.'));
    return running !== undefined;
  }

  #fail(name: string, error: unknown): void {
    this.#failures.set(name, asSentence(messageOf(error)));
    if (this.#failures.size > MAX_FAILURES) this.#failures.delete(this.#failures.keys().next().value!);
  }
}

function note(running: Running, { done, total, kept }: PullProgress): void {
  // The clock starts with the first bytes, not with what was asked before.
  if (running.totalBytes === 0) running.beganMs = performance.now();
  running.doneBytes = done;
  running.totalBytes = total;
  const seconds = (performance.now() - running.beganMs) / 1000;
  running.bytesPerSecond = seconds < 1 ? 0 : Math.max(0, (done - kept) / seconds);
}
