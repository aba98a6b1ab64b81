import type net from 'node:net';
import { createServer } from 'node:net';
import tls from 'node:tls';
import { type GroupAddress, isShared } from '../../callbacks/group-address.js';
import { HANDSHAKE_LIMIT_MS, serverKeys } from './rank-sockets.js';

/** Connections that have not proven to be ranks, of which most are strangers. */
const MAX_UNPROVEN = 64;

export interface DoorEvents {
  /** A connection that knows the secret, where there is one. It has to be admitted before its time is over. */
  onConnection: (socket: net.Socket) => void;
  /** A connection that did not get so far, for example with another secret, or the door itself cannot be opened. */
  onProblem: (error: Error) => void;
}

/**
 * Where ranks come in. No connection stands in it for long: one that is not admitted within the limit is
 * closed, whether nothing comes on it, or half of a handshake, or the wrong thing; and when there are too
 * many of these, the next one takes the place of an older one. So a client that opens connections and says
 * nothing keeps no rank out.
 *
 *   connection -- TLS, where there is a secret --> onConnection -- says which rank it is --> admit
 *        '---------------- at most limitMs, at most MAX_UNPROVEN of them ----------------'
 */
export class Door {
  readonly #server: net.Server;
  readonly #secret: string | null;
  readonly #events: DoorEvents;
  readonly #limitMs: number;
  /** Those that are not admitted yet, the oldest first, with where they come from and the timers that close them. */
  readonly #unproven = new Map<net.Socket, { from: string; timer: NodeJS.Timeout }>();
  /** What carries the connection that was handed out. */
  readonly #carriers = new WeakMap<net.Socket, net.Socket>();

  constructor(
    address: GroupAddress,
    secret: string | null,
    events: DoorEvents,
    limitMs = HANDSHAKE_LIMIT_MS,
  ) {
    this.#secret = secret;
    this.#events = events;
    this.#limitMs = limitMs;
    this.#server = createServer((carrier) => this.#enter(carrier));
    this.#server.on('error', events.onProblem);
    if (isShared(address)) this.#server.listen(address.path);
    else this.#server.listen(address.port, address.host);
  }

  get isOpen(): boolean {
    return this.#server.listening;
  }

  /** It is a rank: its connection stays. */
  admit(socket: net.Socket): void {
    this.#forget(this.#carriers.get(socket)!);
  }

  /** Admits no more connections. Those that are admitted stay. */
  close(): void {
    this.#server.close();
    for (const carrier of this.#unproven.keys()) carrier.destroy();
  }

  #enter(carrier: net.Socket): void {
    if (this.#unproven.size >= MAX_UNPROVEN) this.#sendOneAway();
    const timer = setTimeout(() => carrier.destroy(), this.#limitMs);
    this.#unproven.set(carrier, { from: carrier.remoteAddress ?? '', timer });
    carrier.once('close', () => this.#forget(carrier));
    // The user of the carrier receives the error.
    carrier.on('error', () => {});
    if (this.#secret === null) this.#handOut(carrier, carrier);
    else this.#secure(carrier, this.#secret);
  }

  /** A server for each connection, since one for all does not say over which of them it has spoken. */
  #secure(carrier: net.Socket, secret: string): void {
    const server = tls.createServer({ ...serverKeys(secret), handshakeTimeout: this.#limitMs });
    server.on('secureConnection', (socket) => this.#handOut(socket, carrier));
    server.on('tlsClientError', this.#events.onProblem);
    server.emit('connection', carrier);
  }

  #handOut(socket: net.Socket, carrier: net.Socket): void {
    this.#carriers.set(socket, carrier);
    this.#events.onConnection(socket);
  }

  /** The oldest of those that come from where most of them come from. */
  #sendOneAway(): void {
    const numbers = new Map<string, number>();
    for (const { from } of this.#unproven.values()) numbers.set(from, (numbers.get(from) ?? 0) + 1);
    const most = Math.max(...numbers.values());
    for (const [carrier, { from }] of this.#unproven) {
      if (numbers.get(from) !== most) continue;
      this.#forget(carrier);
      carrier.destroy();
      return;
    }
  }

  #forget(carrier: net.Socket): void {
    clearTimeout(this.#unproven.get(carrier)?.timer);
    this.#unproven.delete(carrier);
  }
}
