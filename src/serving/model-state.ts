import { type MissingRanks, waitingFor } from '../../callbacks/ranks-options.js';

/** Status of an engine. */
export type EngineStatus = 'ready' | 'restarting' | 'failed';

/** The executor of a model. */
export interface ModelExecutor {
  name: string;
  /** Why the executor is not the fastest, and how to get that; null: it is the fastest, or was asked for. */
  fallback: string | null;
}

/** The ranks that run a model together. */
export interface ModelRanks {
  size: number;
  /** Where ranks that are started elsewhere come to; null: they are started here. */
  address: string | null;
}

/**
 * Which ranks a group waits for, and why the last one that came was refused, as the end of a sentence and
 * perhaps another one.
 */
export function missingText(missing: MissingRanks): string {
  const { refused } = missing;
  return `${waitingFor(missing)}.${refused === null ? '' : ` The last one that came was refused: ${refused}`}`;
}

/** State of one model's engine, for all who follow it. */
export class ModelState {
  /** The model's executor; null where it is not known. */
  executor: ModelExecutor | null = null;
  /** Id of the engine's process; null where it has none of its own, or none at present. */
  pid: () => number | null = () => null;
  /** null: one process alone runs it. */
  ranks: ModelRanks | null = null;
  #missing: MissingRanks | null = null;
  #status: EngineStatus = 'ready';
  #failure: Error | null = null;
  #restarts = 0;
  #resumed = 0;
  #isAway = false;
  readonly #listeners = new Set<() => void>();

  get status(): EngineStatus {
    return this.#status;
  }

  /** Why the engine is not ready; null where it is. */
  get failure(): Error | null {
    return this.#failure;
  }

  /** Why the engine is not ready, as a text; null where it is. */
  get reason(): string | null {
    if (this.#failure === null || this.#missing === null) return this.#failure?.message ?? null;
    return `${this.#failure.message} It is ${missingText(this.#missing)}`;
  }

  /** Ranks that it waits for; null: none is missing. */
  get missing(): MissingRanks | null {
    return this.#missing;
  }

  /** Number of restarts of the engine after it had died. */
  get restarts(): number {
    return this.#restarts;
  }

  /** Requests that the engine before had, and that continue in this one. */
  get resumed(): number {
    return this.#resumed;
  }

  /**
   * True while no worker could answer with the model: a request that names no model is better served by
   * another one.
   */
  get isAway(): boolean {
    return this.#isAway;
  }

  /** Notes that no worker has the model any more: requests wait for one. */
  leave(failure: Error): void {
    this.#isAway = true;
    this.#set('restarting', failure);
  }

  /** Notes that the engine died and will be restarted: requests wait meanwhile. */
  restart(failure: Error): void {
    this.#set('restarting', failure);
  }

  /** Notes which ranks the model waits for. */
  noteMissing(missing: MissingRanks): void {
    this.#missing = missing.ranks.length === 0 ? null : missing;
    for (const listener of [...this.#listeners]) listener();
  }

  /** Notes that the engine runs again. @param resumed see there */
  recover(resumed = 0): void {
    this.#isAway = false;
    this.#resumed = resumed;
    this.#restarts++;
    this.#set('ready', null);
  }

  /** Notes that the engine died for good. */
  fail(failure: Error): void {
    this.#set('failed', failure);
  }

  /** Calls the listener after each change, until the returned function is called. */
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
