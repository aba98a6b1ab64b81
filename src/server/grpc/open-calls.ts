/** A call as its place among others needs it. */
export interface OpenCall {
  /** It makes room for others. */
  giveWay(): void;
}

/** Calls without a key that may be there at once, on all connections. */
export const MAX_OPEN_CALLS = 256;
/** Of these one connection may have this many where all places are taken. */
const FEW = 8;

/**
 * Places of the calls that need no key, shared by all connections. A call ends as soon as its message has
 * arrived; calls that send none, or watch, are the first to be dropped when others come: a flood of such
 * calls does not keep out the probes of an orchestrator.
 *
 *   oldest  | watch | no message | ... | no message | probe |  newest
 *              '- gives way to one more
 */
export class OpenCalls<Connection extends object> {
  readonly #most: number;
  readonly #calls = new Map<OpenCall, Connection>();
  readonly #ofConnection = new Map<Connection, number>();

  constructor(most = MAX_OPEN_CALLS) {
    this.#most = most;
  }

  get size(): number {
    return this.#calls.size;
  }

  /** All places are taken, by this connection's calls too: it is not to have another one. */
  isFlood(connection: Connection): boolean {
    return this.#calls.size >= this.#most && (this.#ofConnection.get(connection) ?? 0) >= FEW;
  }

  /** Takes a place, if need be that of the oldest. Returns what gives it back. */
  add(call: OpenCall, connection: Connection): () => void {
    const [oldest] = this.#calls.size >= this.#most ? this.#calls.keys() : [];
    if (oldest !== undefined) {
      this.#remove(oldest);
      oldest.giveWay();
    }
    this.#calls.set(call, connection);
    this.#ofConnection.set(connection, (this.#ofConnection.get(connection) ?? 0) + 1);
    return () => this.#remove(call);
  }

  #remove(call: OpenCall): void {
    const connection = this.#calls.get(call);
    if (connection === undefined) return;
    this.#calls.delete(call);
    const rest = this.#ofConnection.get(connection)! - 1;
    if (rest === 0) this.#ofConnection.delete(connection);
    else this.#ofConnection.set(connection, rest);
  }
}
