import { InferError } from '../../callbacks/infer/infer-error.js';
import type { CloseOptions } from '../../host/in-process-host.js';

/** Requests that a model without workers of its own has, until they are over. */
export class ModelRuns<Run> {
  readonly #model: string;
  readonly #runs = new Set<Run>();
  #isClosed = false;
  /** Called when the last request is over. */
  readonly #onIdle: (() => void)[] = [];

  /** @param model its name */
  constructor(model: string) {
    this.#model = model;
  }

  get size(): number {
    return this.#runs.size;
  }

  /** @throws InferError once it is closed */
  requireOpen(): void {
    if (this.#isClosed)
      throw new InferError(`Request for model '${this.#model}', which is unloaded`, 'unavailable');
  }

  add(run: Run): void {
    this.#runs.add(run);
  }

  leave(run: Run): void {
    this.#runs.delete(run);
    if (this.#runs.size === 0) for (const tell of this.#onIdle.splice(0)) tell();
  }

  /** Takes no more requests; resolves when those that were taken are answered, or cancelled. */
  async close({ abort = false, timeoutMs }: CloseOptions, cancel: (run: Run, reason: InferError) => void) {
    this.#isClosed = true;
    const cancelAll = () => {
      const reason = new InferError(`the model '${this.#model}' is unloaded`, 'unavailable');
      for (const run of [...this.#runs]) cancel(run, reason);
    };
    if (abort) cancelAll();
    if (this.#runs.size === 0) return;
    const timer = timeoutMs === undefined ? undefined : setTimeout(cancelAll, timeoutMs);
    await new Promise<void>((resolve) => this.#onIdle.push(resolve));
    clearTimeout(timer);
  }
}
