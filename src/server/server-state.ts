import type { ModelDirectory } from '../serving/model-directory.js';
import type { EngineStatus, ModelState } from '../serving/model-state.js';

/** What /health says. One that is ready or degraded should be given work: a degraded one has models that do not run. */
export type ServerStatus = EngineStatus | 'degraded' | 'draining';

/** State shared by the routes and whoever starts and stops the server. */
export class ServerState {
  readonly #models: ModelDirectory;
  readonly #drainListeners = new Set<() => void>();
  #isDraining = false;
  #drainEndsMs: number | null = null;

  constructor(models: ModelDirectory) {
    this.#models = models;
  }

  /** Of the models that are served, by name, in their order. */
  get models(): ReadonlyMap<string, ModelState> {
    return new Map(this.#models.list().map(({ id, state }) => [id, state]));
  }

  /** @throws where there is none of this name. */
  model(name: string): ModelState {
    const state = this.models.get(name);
    if (state === undefined) throw new Error(`There is no state of a model '${name}'.`);
    return state;
  }

  /**
   * While any model is ready the server is, at least in part: a model that is down takes no others with it. Where there is none
   * at all, nothing is down.
   */
  get status(): ServerStatus {
    if (this.#isDraining) return 'draining';
    const all = this.#models.list().map(({ state }) => state.status);
    const some = (status: EngineStatus) => all.includes(status);
    if (all.every((status) => status === 'ready')) return 'ready';
    return some('ready') ? 'degraded' : some('restarting') ? 'restarting' : 'failed';
  }

  /** Of the first model that is not ready; null where all are. */
  get reason(): string | null {
    return this.#models.list().find(({ state }) => state.reason !== null)?.state.reason ?? null;
  }

  /** Restarts of all engines that are served. */
  get restarts(): number {
    return this.#models.list().reduce((sum, { state }) => sum + state.restarts, 0);
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
