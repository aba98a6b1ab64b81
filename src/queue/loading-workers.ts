import type { LoadingNotice } from '../../cluster/nats/loading-notice.js';

/** Workers of a model that load it, and those that have. */
export interface LoadCounts {
  loading: number;
  /** How far the foremost is in its phase; null: none says. */
  fraction: number | null;
  /** Loads that have ended well, and the milliseconds that they took together. */
  loads: number;
  loadMs: number;
}

/** Milliseconds of silence after which a worker loads no more: it reports every second. */
const SILENCE_MS = 5_000;
/** Most workers, and most models, whose reports are kept. */
const MOST = 1_000;

/** What a gateway knows of workers that do not take requests yet. */
export class LoadingWorkers {
  readonly #workers = new Map<string, LoadingNotice & { heardMs: number }>();
  readonly #loaded = new Map<string, { loads: number; loadMs: number }>();

  hear(notice: LoadingNotice, nowMs = performance.now()): void {
    const { worker, model, phase, elapsedMs } = notice;
    if (phase === 'able') return;
    this.#forget(nowMs);
    if (phase !== 'ready') {
      if (this.#workers.has(worker) || this.#workers.size < MOST)
        this.#workers.set(worker, { ...notice, heardMs: nowMs });
      return;
    }
    this.#workers.delete(worker);
    const before = this.#loaded.get(model) ?? { loads: 0, loadMs: 0 };
    if (before.loads === 0 && this.#loaded.size >= MOST) return;
    this.#loaded.set(model, { loads: before.loads + 1, loadMs: before.loadMs + elapsedMs });
  }

  #forget(nowMs: number): void {
    for (const [worker, { heardMs }] of this.#workers)
      if (nowMs - heardMs > SILENCE_MS) this.#workers.delete(worker);
  }

  /** @param model name of one */
  of(model: string, nowMs = performance.now()): LoadCounts {
    this.#forget(nowMs);
    const theirs = [...this.#workers.values()].filter((one) => one.model === model);
    const fractions = theirs.flatMap(({ fraction }) => fraction ?? []);
    return {
      loading: theirs.length,
      fraction: fractions.length === 0 ? null : Math.max(...fractions),
      ...(this.#loaded.get(model) ?? { loads: 0, loadMs: 0 }),
    };
  }
}
