import { type IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { WebSocket } from 'ws';

/** An open socket, as its server hands it out. */
export interface SocketLink {
  socket: WebSocket;
  /** What it goes over. */
  connection: Socket;
  /** A request has begun, which the end of the server waits for. Returns its end. */
  beginWork(): () => void;
}

/** Begins to serve a socket. */
export type ServeSocket = (link: SocketLink) => void;

/** A request for a WebSocket. Other upgrades, such as that to HTTP/2, are offers that a server may decline. Source: RFC 6455, 4.2.1. */
export function isForWebSocket({ method, headers }: IncomingMessage): boolean {
  return method === 'GET' && headers.upgrade?.toLowerCase() === 'websocket';
}

const upgrades = new WeakMap<IncomingMessage, Upgrade>();

/** The upgrade that a request asks for; undefined: it is an ordinary one. */
export function upgradeOf(incoming: IncomingMessage | undefined): Upgrade | undefined {
  return incoming === undefined ? undefined : upgrades.get(incoming);
}

/**
 * A request for a WebSocket on its way through the app, whose checks are those of every request. A refusal is
 * a plain answer, after which the connection ends. A route that accepts it sends no answer: the handshake
 * follows once all of the app is done with the request.
 *
 *   Node.js: upgrade --> begin --> app --+-- accept --> hand over --> handshake, messages
 *                                        '-- 401, 403, 404 ... --> end of the connection
 */
export class Upgrade {
  readonly incoming: IncomingMessage;
  readonly outgoing: ServerResponse;
  readonly connection: Socket;
  /** What came after the headers. */
  readonly head: Buffer;
  #serve: ServeSocket | null = null;

  private constructor(incoming: IncomingMessage, connection: Socket, head: Buffer) {
    this.incoming = incoming;
    this.connection = connection;
    this.head = head;
    this.outgoing = new ServerResponse(incoming);
    this.outgoing.shouldKeepAlive = false;
    upgrades.set(incoming, this);
  }

  /**
   * Null where the answer to an earlier request is not out: its connection is cut then, since clients do not
   * pipeline an upgrade.
   */
  static begin(incoming: IncomingMessage, connection: Socket, head: Buffer): Upgrade | null {
    // Node.js has taken its own listener away.
    connection.on('error', () => connection.destroy());
    const upgrade = new Upgrade(incoming, connection, head);
    const { outgoing } = upgrade;
    try {
      outgoing.assignSocket(connection);
    } catch {
      connection.destroy();
      return null;
    }
    outgoing.once('finish', () => {
      outgoing.detachSocket(connection);
      connection.destroySoon();
    });
    connection.once('close', () => upgrade.#endExchange());
    return upgrade;
  }

  /** The connection becomes a WebSocket when the app is done with the request. */
  accept(serve: ServeSocket): void {
    this.#serve = serve;
  }

  get isAccepted(): boolean {
    return this.#serve !== null;
  }

  /** Takes the connection from the exchange, which is over then. Null: it was refused, or its client has left. */
  handOver(): ServeSocket | null {
    if (this.#serve === null || this.connection.destroyed) return null;
    this.outgoing.detachSocket(this.connection);
    this.#endExchange();
    return this.#serve;
  }

  /** Emits 'close', which Node.js does only for answers that it has made itself. */
  #endExchange(): void {
    if (this.outgoing.closed) return;
    Object.defineProperty(this.outgoing, 'closed', { value: true });
    this.outgoing.emit('close');
  }
}
