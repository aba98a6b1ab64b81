/** How an engine fares. */
export type EngineStatus = 'ready' | 'restarting' | 'failed';

/** What computes for a model. */
export interface ModelExecutor {
  name: string;
  /** Why it is not the fastest, and how to get that; null: it is, or it was asked for. */
  fallback: string | null;
}

/** How the engine of one model fares, for all who follow it. */
export class ModelState {
  /** Null where that was not said. */
  executor: ModelExecutor | null = null;
  /** The id of the engine's process; null where it has none of its own, or has none now. */
  pid: () => number | null = () => null;
  #status: EngineStatus = 'ready';
  #failure: Error | null = null;
  #restarts = 0;
  readonly #listeners = new Set<() => void>();

  get status(): EngineStatus {
    return this.#status;
  }

  /** Why the engine is not ready; null where it is. */
  get failure(): Error | null {
    return this.#failure;
  }

  /** The same as a text. */
  get reason(): string | null {
    return this.#failure?.message ?? null;
  }

  /** How often the engine was started again after it had died. */
  get restarts(): number {
    return this.#restarts;
  }

  /** The engine died and will be started again: requests wait meanwhile. */
  restart(failure: Error): void {
    this.#set('restarting', failure);
  }

  /** The engine runs again. */
  recover(): void {
    this.#restarts++;
    this.#set('ready', null);
  }

  /** The engine died for good. */
  fail(failure: Error): void {
    this.#set('failed', failure);
  }

  /** Calls the listener after each change, until the function that it returns is called. */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #set(status: EngineStatus, failure: Error | null): void {
    this.#status = status;
    this.#failure = failure;
    for (const listener of [...this.#listeners]) listener();
  }
}
