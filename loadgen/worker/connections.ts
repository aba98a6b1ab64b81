import type { Socket } from 'node:net';
import type { buildConnector, Client } from 'undici';
import { undici } from '../undici.js';
import type { TlsOptions } from './frames.js';

/** Handshakes at once while connections are opened ahead; more would overflow the server's backlog. */
const HANDSHAKES = 64;
const CONNECT_TIMEOUT_MS = 10_000;
/** Idle connections are kept as long as the server lets them. */
const IDLE_MS = 3_600_000;

export interface ConnectionOptions {
  origin: string;
  /** Connections at once. */
  most: number;
  /** false: each connection serves one request. */
  keepAlive: boolean;
  tls: TlsOptions;
}

/**
 * Connections to one server, a request at a time on each. Those that are idle lie on a stack, so the one used last, whose
 * buffers are warm, is next, and taking one is a pop.
 */
export class Connections {
  /** Sockets opened so far. */
  opened = 0;
  readonly #options: ConnectionOptions;
  readonly #idle: Client[] = [];
  readonly #stock: Socket[] = [];
  readonly #connect: buildConnector.connector;
  readonly #all = new Set<Client>();

  constructor(options: ConnectionOptions) {
    this.#options = options;
    this.#connect = undici.buildConnector({ timeout: CONNECT_TIMEOUT_MS, ...options.tls });
  }

  /** Opens so many connections. Resolves to how many there are: fewer where the server refuses. */
  async warm(count: number): Promise<number> {
    let left = count;
    const open = async () => {
      while (left > 0) {
        left--;
        const socket = await this.#open().catch(() => null);
        if (socket === null) return;
        this.#stock.push(socket);
      }
    };
    await Promise.all(Array.from({ length: Math.min(count, HANDSHAKES) }, open));
    for (const _ of this.#stock) this.#idle.push(this.#newClient());
    return this.#stock.length;
  }

  /** A connection for one request; null where there are as many as there may be. */
  acquire(): Client | null {
    const idle = this.#idle.pop();
    if (idle !== undefined) return idle;
    return this.#all.size < this.#options.most ? this.#newClient() : null;
  }

  /** The request on it is over. */
  release(client: Client, isBroken: boolean): void {
    if (this.#options.keepAlive && !isBroken) {
      this.#idle.push(client);
      return;
    }
    this.#all.delete(client);
    client.destroy().catch(() => {});
  }

  close(): void {
    for (const client of this.#all) client.destroy().catch(() => {});
    for (const socket of this.#stock) socket.destroy();
    this.#all.clear();
    this.#idle.length = 0;
    this.#stock.length = 0;
  }

  #newClient(): Client {
    const client = new undici.Client(this.#options.origin, {
      pipelining: 1,
      // Limits of time are the worker's own.
      headersTimeout: 0,
      bodyTimeout: 0,
      keepAliveTimeout: IDLE_MS,
      keepAliveMaxTimeout: IDLE_MS,
      connect: (options, callback) => this.#handOver(options, callback),
    });
    this.#all.add(client);
    return client;
  }

  /** A socket that is open already, else a new one. */
  #handOver(options: buildConnector.Options, callback: buildConnector.Callback): void {
    for (let socket = this.#stock.pop(); socket !== undefined; socket = this.#stock.pop()) {
      if (!socket.destroyed && socket.readable) {
        // The client takes no answer while it is asking.
        const open = socket;
        queueMicrotask(() => callback(null, open));
        return;
      }
    }
    this.opened++;
    this.#connect(options, callback);
  }

  #open(): Promise<Socket> {
    const { protocol, hostname, host, port } = new URL(this.#options.origin);
    return new Promise((resolve, reject) => {
      this.opened++;
      this.#connect({ hostname: unbracketed(hostname), host, protocol, port }, (error, socket) => {
        if (error !== null) return reject(error);
        resolve(socket as Socket);
      });
    });
  }
}

/** An address of IPv6 as sockets take it. */
function unbracketed(hostname: string): string {
  return hostname.startsWith('[') ? hostname.slice(1, -1) : hostname;
}
