import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** Most requests that may wait behind the one in progress on their connection; a client that sends more is cut off. */
export const MOST_WAITING = 64;

type Begin = (incoming: IncomingMessage, outgoing: ServerResponse) => void;

/**
 * Begins one request of a connection at a time: pipelined ones wait until the one in front is answered. Node.js would
 * begin all requests in a packet, even a thousand, and at the connection's end tells only the one whose answer is being
 * sent: memory of the others would be held for ever.
 *
 *   sent       A B C                        connection ends
 *   answered   AAAAAAAA BBBBBB              C is dropped: nothing of it was begun
 */
export class RequestTurns {
  readonly #begin: Begin;
  /** Requests that wait behind the one in progress, by their connection. */
  readonly #waiting = new WeakMap<Socket, [IncomingMessage, ServerResponse][]>();

  constructor(begin: Begin) {
    this.#begin = begin;
  }

  take(incoming: IncomingMessage, outgoing: ServerResponse): void {
    const { socket } = incoming;
    const waiting = this.#waiting.get(socket);
    if (waiting === undefined) {
      this.#waiting.set(socket, []);
      this.#start(incoming, outgoing);
    } else if (waiting.length < MOST_WAITING) waiting.push([incoming, outgoing]);
    else socket.destroy();
  }

  #start(incoming: IncomingMessage, outgoing: ServerResponse): void {
    // This listener runs before all others, so that the connection is never idle between two of its requests.
    outgoing.once('close', () => this.#next(incoming.socket));
    this.#begin(incoming, outgoing);
  }

  #next(socket: Socket): void {
    const next = this.#waiting.get(socket)?.shift();
    if (next === undefined || socket.destroyed) this.#waiting.delete(socket);
    else this.#start(...next);
  }
}
