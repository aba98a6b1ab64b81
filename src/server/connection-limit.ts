import type { IncomingMessage, Server } from 'node:http';
import type { Socket } from 'node:net';
import { ApiError } from './openai/errors.js';

/** Number of connections beyond the limit that are let in to be told so; further ones are closed without a word. */
const SURPLUS = 256;
/** Milliseconds that such a connection may take to send its request. */
const SURPLUS_MS = 5_000;
const RETRY_AFTER_S = 5;

/** Limits the number of open connections, so that idle ones cannot use up the files that the process may open. */
export class ConnectionLimit {
  readonly #most: number;
  readonly #surplus = new WeakSet<Socket>();
  #open = 0;

  /** @param most number of connections that may send requests */
  constructor(server: Server, most: number, isTls: boolean) {
    this.#most = most;
    server.maxConnections = most + SURPLUS;
    server.on(isTls ? 'secureConnection' : 'connection', (socket: Socket) => this.#note(socket));
  }

  #note(socket: Socket): void {
    this.#open++;
    socket.once('close', () => this.#open--);
    if (this.#open <= this.#most) return;
    this.#surplus.add(socket);
    socket.setTimeout(SURPLUS_MS, () => socket.destroy());
  }

  /** Why a request on a surplus connection is refused; null: it is not. /live is answered in any case. */
  refusalOf({ socket, url }: IncomingMessage): ApiError | null {
    if (!this.#surplus.has(socket) || url === '/live') return null;
    return new ApiError(
      503,
      `This server has its ${this.#most} connections (--max-connections); try again later.`,
      {
        code: 'too_many_connections',
        headers: { 'retry-after': String(RETRY_AFTER_S) },
      },
    );
  }
}
