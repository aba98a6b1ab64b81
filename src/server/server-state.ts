/** What /health says. Only a server that is ready should be given work. */
export type ServerStatus = 'ready' | 'restarting' | 'draining' | 'failed';

/** State shared by the routes and whoever starts and stops the server. */
export class ServerState {
  #engine: Exclude<ServerStatus, 'draining'> = 'ready';
  #reason: string | null = null;
  #isDraining = false;
  #restarts = 0;

  get status(): ServerStatus {
    return this.#isDraining ? 'draining' : this.#engine;
  }

  /** Why the engine is not ready; null where it is. */
  get reason(): string | null {
    return this.#reason;
  }

  /** How often the engine was started again after it had died. */
  get restarts(): number {
    return this.#restarts;
  }

  drain(): void {
    this.#isDraining = true;
  }

  /** The engine died and will be started again: requests wait meanwhile. */
  restart(reason: string): void {
    this.#engine = 'restarting';
    this.#reason = reason;
  }

  /** The engine runs again. */
  recover(): void {
    this.#engine = 'ready';
    this.#reason = null;
    this.#restarts++;
  }

  fail(reason: string): void {
    this.#engine = 'failed';
    this.#reason = reason;
  }
}
