import type { IncomingMessage, Server } from 'node:http';
import type { Socket } from 'node:net';
import { ApiError } from './openai/errors.js';

/** Connections beyond the limit that are let in, to be told so; those beyond these are closed without a word. */
const SURPLUS = 256;
/** How long one of them may take to ask. */
const SURPLUS_MS = 5_000;
const RETRY_AFTER_S = 5;

/** Bounds how many connections are open at once, so that idle ones cannot use up what files the process may open. */
export class ConnectionLimit {
  readonly #most: number;
  readonly #surplus = new WeakSet<Socket>();
  #open = 0;

  /** @param most of connections that may ask. */
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

  /** Why a request on one connection too many is refused; null: it is not. That the process runs is told in any case. */
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
