/** What /health says: loading and draining servers should get no new work. */
export type ServerStatus = 'ready' | 'draining' | 'failed';

/** State shared by the routes and whoever starts and stops the server. */
export class ServerState {
  #status: ServerStatus = 'ready';
  #reason: string | null = null;

  get status(): ServerStatus {
    return this.#status;
  }

  /** Why the status is 'failed'. */
  get reason(): string | null {
    return this.#reason;
  }

  drain(): void {
    this.#status = 'draining';
  }

  fail(reason: string): void {
    this.#status = 'failed';
    this.#reason = reason;
  }
}
