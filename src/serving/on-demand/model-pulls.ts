import type { PulledModel, PullProgress } from '../../hub/pull.js';
import { pulledName, type Repository } from '../../hub/repository.js';
import { ModelLoadError } from '../model-load-error.js';

/** Downloads a repository's model; what has come is kept where it is aborted. */
export type Download = (
  repository: Repository,
  on: {
    onProgress: (progress: PullProgress) => void;
    signal: AbortSignal;
    /** Bytes of the disk that other downloads will take. */
    awaitedBytes: () => number;
  },
) => Promise<PulledModel>;

interface Pull {
  repository: Repository;
  listeners: Set<(progress: PullProgress) => void>;
  /** Bytes that are still to come; 0: the hub has not said yet. */
  awaitedBytes: number;
  abort: AbortController;
  done: Promise<PulledModel>;
}

const NEVER = new Promise<never>(() => {});

/** Downloads at once. */
const MAX_PULLS = 4;

/** Downloads from the hub, each once for all callers; one that is no longer awaited is given up. */
export class ModelPulls {
  readonly #download: Download;
  readonly #pulls = new Map<string, Pull>();

  constructor(download: Download) {
    this.#download = download;
  }

  /** Something of the repository is being downloaded. */
  isPulling(id: string): boolean {
    return [...this.#pulls.values()].some(({ repository }) => repository.id === id);
  }

  /**
   * Downloads a model, or waits for a download that is under way.
   * @throws ModelLoadError where too many are; HubError; the signal's reason
   */
  async pull(
    repository: Repository,
    onProgress: (progress: PullProgress) => void,
    signal: AbortSignal,
  ): Promise<PulledModel> {
    signal.throwIfAborted();
    const pull = this.#pulls.get(pulledName(repository)) ?? this.#begin(repository);
    pull.listeners.add(onProgress);
    let onAbort = () => {};
    const gone = new Promise<never>((_, reject) => {
      onAbort = () => reject(signal.reason);
      signal.addEventListener('abort', onAbort, { once: true });
    });
    try {
      return await Promise.race([pull.done, gone]);
    } finally {
      signal.removeEventListener('abort', onAbort);
      pull.listeners.delete(onProgress);
      if (pull.listeners.size === 0) {
        pull.abort.abort(new Error('No request waits for the download any more.'));
        this.#end(pull);
      }
    }
  }

  /** Gives up all downloads. */
  close(): void {
    for (const { abort } of this.#pulls.values()) abort.abort(new Error('The server is shutting down.'));
  }

  #begin(repository: Repository): Pull {
    if (this.#pulls.size >= MAX_PULLS) {
      throw new ModelLoadError(
        'tooMany',
        `${this.#pulls.size} models are being downloaded; at most ${MAX_PULLS} are at once.`,
      );
    }
    const abort = new AbortController();
    const listeners: Pull['listeners'] = new Set();
    const onProgress = (progress: PullProgress) => {
      pull.awaitedBytes = progress.total - progress.done;
      for (const listener of listeners) listener(progress);
    };
    const awaitedBytes = () => this.#awaitedBytes(pull);
    const pull: Pull = { repository, listeners, awaitedBytes: 0, abort, done: NEVER };
    pull.done = this.#download(repository, { onProgress, signal: abort.signal, awaitedBytes });
    this.#pulls.set(pulledName(repository), pull);
    const end = () => this.#end(pull);
    pull.done.then(end, end);
    return pull;
  }

  /** Bytes that all downloads but one will take. */
  #awaitedBytes(mine: Pull): number {
    const others = [...this.#pulls.values()].filter((pull) => pull !== mine);
    return others.reduce((sum, { awaitedBytes }) => sum + awaitedBytes, 0);
  }

  #end(pull: Pull): void {
    const key = pulledName(pull.repository);
    if (this.#pulls.get(key) === pull) this.#pulls.delete(key);
  }
}
