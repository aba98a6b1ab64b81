import type { ModelDirectory } from '../../serving/model-directory.js';
import type { EngineStatus, ModelState } from '../../serving/model-state.js';

/**
 * Status in /health. A server that is ready or degraded should be given work: a degraded one has some models
 * that do not run. One that is loading has not yet loaded all its startup models, and one that is
 * disconnected reaches no worker.
 */
export type ServerStatus = EngineStatus | 'degraded' | 'draining' | 'loading' | 'disconnected';

const READING_REPOSITORY = 'the model repository is being read';
/** Names that a reason lists. */
const MAX_NAMES = 10;

/** State shared by the routes and the code that starts and stops the server. */
export class ServerState {
  readonly #models: ModelDirectory;
  readonly #starting: () => readonly string[] | null;
  readonly #isLooking: string;
  readonly #whyCutOff: () => string | null;
  readonly #drainListeners = new Set<() => void>();
  #isDraining = false;
  #drainEndsMs: number | null = null;

  /**
   * @param starting names of startup models that are not loaded yet; null: the start is over
   * @param isLooking what it does where it has no names yet, as a clause
   * @param whyCutOff why it reaches no worker, as a clause; null: it reaches one
   */
  constructor(
    models: ModelDirectory,
    starting: () => readonly string[] | null = () => null,
    isLooking = READING_REPOSITORY,
    whyCutOff: () => string | null = () => null,
  ) {
    this.#models = models;
    this.#whyCutOff = whyCutOff;
    this.#starting = starting;
    this.#isLooking = isLooking;
  }

  /** States of the served models, by name, in their order. */
  get models(): ReadonlyMap<string, ModelState> {
    return new Map(this.#models.list().map(({ id, state }) => [id, state]));
  }

  /** State of a model. @throws Error where none of this name is served. */
  model(name: string): ModelState {
    const state = this.models.get(name);
    if (state === undefined) throw new Error(`There is no state of a model '${name}'.`);
    return state;
  }

  /**
   * Status of the server, which is at least degraded while any model is ready, or waits for a worker elsewhere: a model that is down takes
   * no others with it. Without models nothing is down.
   */
  get status(): ServerStatus {
    if (this.#isDraining) return 'draining';
    if (this.#whyCutOff() !== null) return 'disconnected';
    if (this.#starting() !== null) return 'loading';
    const all = this.#models.list().map(({ state }) => state.status);
    const some = (status: EngineStatus) => all.includes(status);
    if (all.every((status) => status === 'ready')) return 'ready';
    // Requests wait for a worker, and only a server that receives them can report that one is wanted.
    const isAnyAway = this.#models.list().some(({ state }) => state.isAway);
    if (some('ready') || isAnyAway) return 'degraded';
    return some('restarting') ? 'restarting' : 'failed';
  }

  /** It takes no new requests. */
  get isDraining(): boolean {
    return this.#isDraining;
  }

  /** Names of models that the start of the server has not loaded yet; empty also where the folders are still read, or it is over. */
  get loading(): readonly string[] {
    return this.#starting() ?? [];
  }

  /** Why it is cut off, or what the start still waits for, else the reason of the first model that is not ready; null where all are. */
  get reason(): string | null {
    const whyCutOff = this.#whyCutOff();
    if (whyCutOff !== null) return whyCutOff;
    const starting = this.#starting();
    if (starting !== null) return loadingReason(starting, this.#isLooking);
    return this.#models.list().find(({ state }) => state.reason !== null)?.state.reason ?? null;
  }

  /** Number of restarts of all served engines. */
  get restarts(): number {
    return this.#models.list().reduce((sum, { state }) => sum + state.restarts, 0);
  }

  /** Most milliseconds until this process has ended; null where that is unknown. */
  get drainEndsInMs(): number | null {
    return this.#drainEndsMs === null ? null : Math.max(0, this.#drainEndsMs - performance.now());
  }

  /** Begins to drain. @param limitMs milliseconds after which the rest is cut off. */
  drain(limitMs?: number): void {
    if (limitMs !== undefined) this.#drainEndsMs = performance.now() + limitMs;
    if (this.#isDraining) return;
    this.#isDraining = true;
    for (const listener of [...this.#drainListeners]) listener();
  }

  /** Calls the listener when draining begins, until the returned function is called. */
  onDrain(listener: () => void): () => void {
    this.#drainListeners.add(listener);
    return () => this.#drainListeners.delete(listener);
  }
}

/** Why a server is not ready that still loads these models. */
export function loadingReason(starting: readonly string[], isLooking = READING_REPOSITORY): string {
  if (starting.length === 0) return isLooking;
  const more = starting.length - MAX_NAMES;
  const names = starting.slice(0, MAX_NAMES).join(', ') + (more > 0 ? ` and ${more} more` : '');
  return `${starting.length === 1 ? 'the model' : 'the models'} ${names} ${starting.length === 1 ? 'is' : 'are'} being loaded`;
}
