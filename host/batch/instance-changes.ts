import { EngineFailure } from '../engine-failure.js';

/** Milliseconds that the worker of an instance that goes may take to end; then it is ended. */
const LAST_MS = 5000;

interface Coming {
  resolve: () => void;
  reject: (error: Error) => void;
}

interface Leaving {
  resolve: () => void;
  /** Runs from the moment when the worker was asked to end; null: it was not. */
  timer: NodeJS.Timeout | null;
}

/** Instances of a host that come or go while the others run, by their numbers. */
export class InstanceChanges {
  readonly #coming = new Map<number, Coming>();
  readonly #leaving = new Map<number, Leaving>();
  /** Restarts of those that are gone. */
  pastRestarts = 0;

  /** Resolves when the instance runs; rejects where it cannot be loaded. */
  noteComing(index: number): Promise<void> {
    const ready = new Promise<void>((resolve, reject) => this.#coming.set(index, { resolve, reject }));
    ready.catch(() => {}); // it is reported where it is awaited
    return ready;
  }

  /** Resolves when the instance is gone. */
  noteLeaving(index: number): Promise<void> {
    return new Promise((resolve) => this.#leaving.set(index, { resolve, timer: null }));
  }

  get leaving(): readonly number[] {
    return [...this.#leaving.keys()];
  }

  isLeaving(index: number): boolean {
    return this.#leaving.has(index);
  }

  /** It comes or goes: its end is no failure of the host. */
  isOf(index: number): boolean {
    return this.#leaving.has(index) || this.#coming.has(index);
  }

  noteReady(index: number): void {
    this.#coming.get(index)?.resolve();
    this.#coming.delete(index);
  }

  /** The worker of one that goes is asked to end. False: it was already. @param cannotWait called where it takes too long */
  beginEnd(index: number, cannotWait: () => void): boolean {
    const leaving = this.#leaving.get(index)!;
    if (leaving.timer !== null) return false;
    leaving.timer = setTimeout(cannotWait, LAST_MS);
    return true;
  }

  noteEnded(index: number, restarts: number, error: Error | null): void {
    this.pastRestarts += restarts;
    this.#coming
      .get(index)
      ?.reject(error ?? new EngineFailure('The instance was closed before it was loaded.'));
    this.#coming.delete(index);
    const leaving = this.#leaving.get(index);
    if (leaving?.timer != null) clearTimeout(leaving.timer);
    this.#leaving.delete(index);
    leaving?.resolve();
  }
}
