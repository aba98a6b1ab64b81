import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/**
 * Most requests that may wait after the one in progress on their connection; any after them are not answered.
 */
export const MAX_WAITING = 64;
/** Most requests that a connection may send after those: then it ends at once. */
export const MAX_DROPPED = 4096;

/** Requests of a connection after the one in progress. */
interface Line {
  waiting: [IncomingMessage, ServerResponse][];
  /** Number of requests after the waiting ones, which are never answered. */
  dropped: number;
}

type Begin = (incoming: IncomingMessage, outgoing: ServerResponse) => void;

/**
 * Begins one request of a connection at a time: pipelined ones wait until the one in front is answered.
 * Node.js would begin all requests in a packet, even a thousand, and at the connection's end notifies only
 * the one whose answer is being sent: memory of the others would never be released.
 *
 *   sent       A B C                        connection ends
 *   answered   AAAAAAAA BBBBBB              C is dropped: nothing of it was begun
 *
 * Where more come than may wait, those that wait are answered, the last of them with `Connection: close`, so that a client knows what
 * to send again.
 */
export class RequestTurns {
  readonly #begin: Begin;
  readonly #lines = new WeakMap<Socket, Line>();

  constructor(begin: Begin) {
    this.#begin = begin;
  }

  take(incoming: IncomingMessage, outgoing: ServerResponse): void {
    const { socket } = incoming;
    const line = this.#lines.get(socket);
    if (line === undefined) {
      this.#lines.set(socket, { waiting: [], dropped: 0 });
      this.#start(incoming, outgoing);
      return;
    }
    if (line.dropped === 0 && line.waiting.length < MAX_WAITING) {
      line.waiting.push([incoming, outgoing]);
      return;
    }
    const [, last] = line.waiting.at(-1) ?? [];
    if (last !== undefined) last.shouldKeepAlive = false;
    incoming.resume();
    if (++line.dropped > MAX_DROPPED) socket.destroy();
  }

  #start(incoming: IncomingMessage, outgoing: ServerResponse): void {
    // This listener runs before all others, so that the connection is never idle between two of its requests.
    outgoing.once('close', () => this.#next(incoming.socket));
    this.#begin(incoming, outgoing);
  }

  #next(socket: Socket): void {
    const next = this.#lines.get(socket)?.waiting.shift();
    if (next === undefined || socket.destroyed) this.#lines.delete(socket);
    else this.#start(...next);
  }
}
