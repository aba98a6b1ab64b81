/** How an engine fares. */
export type EngineStatus = 'ready' | 'restarting' | 'failed';
/** What /health says. One that is ready or degraded should be given work: a degraded one has models that do not run. */
export type ServerStatus = EngineStatus | 'degraded' | 'draining';

/** What computes for a model. */
export interface ModelExecutor {
  name: string;
  /** Why it is not the fastest, and how to get that; null: it is, or it was asked for. */
  fallback: string | null;
}

/** How the engine of one model fares. */
export class ModelState {
  /** Null where that was not said. */
  executor: ModelExecutor | null = null;
  #status: EngineStatus = 'ready';
  #reason: string | null = null;
  #restarts = 0;

  get status(): EngineStatus {
    return this.#status;
  }

  /** Why the engine is not ready; null where it is. */
  get reason(): string | null {
    return this.#reason;
  }

  /** How often the engine was started again after it had died. */
  get restarts(): number {
    return this.#restarts;
  }

  /** The engine died and will be started again: requests wait meanwhile. */
  restart(reason: string): void {
    this.#status = 'restarting';
    this.#reason = reason;
  }

  /** The engine runs again. */
  recover(): void {
    this.#status = 'ready';
    this.#reason = null;
    this.#restarts++;
  }

  fail(reason: string): void {
    this.#status = 'failed';
    this.#reason = reason;
  }
}

/** State shared by the routes and whoever starts and stops the server. */
export class ServerState {
  readonly #models: ReadonlyMap<string, ModelState>;
  readonly #drainListeners = new Set<() => void>();
  #isDraining = false;
  #drainEndsMs: number | null = null;

  /** @param names of the models, in their order. */
  constructor(names: readonly string[]) {
    this.#models = new Map(names.map((name) => [name, new ModelState()]));
  }

  get models(): ReadonlyMap<string, ModelState> {
    return this.#models;
  }

  /** @throws where there is none of this name. */
  model(name: string): ModelState {
    const state = this.#models.get(name);
    if (state === undefined) throw new Error(`There is no state of a model '${name}'.`);
    return state;
  }

  /** While any model is ready the server is, at least in part: a model that is down takes no others with it. */
  get status(): ServerStatus {
    if (this.#isDraining) return 'draining';
    const all = [...this.#models.values()].map(({ status }) => status);
    const some = (status: EngineStatus) => all.includes(status);
    if (all.every((status) => status === 'ready')) return 'ready';
    return some('ready') ? 'degraded' : some('restarting') ? 'restarting' : 'failed';
  }

  /** Of the first model that is not ready; null where all are. */
  get reason(): string | null {
    for (const { reason } of this.#models.values()) if (reason !== null) return reason;
    return null;
  }

  /** Restarts of all engines. */
  get restarts(): number {
    return [...this.#models.values()].reduce((sum, { restarts }) => sum + restarts, 0);
  }

  /** Milliseconds until this process has ended at the latest; null where that was not said. */
  get drainEndsInMs(): number | null {
    return this.#drainEndsMs === null ? null : Math.max(0, this.#drainEndsMs - performance.now());
  }

  /** @param limitMs after which what has not ended is cut off. */
  drain(limitMs?: number): void {
    if (limitMs !== undefined) this.#drainEndsMs = performance.now() + limitMs;
    if (this.#isDraining) return;
    this.#isDraining = true;
    for (const listener of [...this.#drainListeners]) listener();
  }

  /** Calls the listener when draining begins, until the function that it returns is called. */
  onDrain(listener: () => void): () => void {
    this.#drainListeners.add(listener);
    return () => this.#drainListeners.delete(listener);
  }
}
