import { createRequire } from 'node:module';
import type { Socket } from 'node:net';
import type { buildConnector, Client } from 'undici';
import type { TlsOptions } from './frames.js';

/** The undici package, loaded only where load is generated: it is larger than the rest of the command line. */
export const undici = createRequire(import.meta.url)('undici') as typeof import('undici');

/** Handshakes at once while connections are opened ahead; more would overflow the server's backlog. */
const HANDSHAKES = 64;
const CONNECT_TIMEOUT_MS = 10_000;
/** Milliseconds that idle connections are kept; the server may end them earlier. */
const IDLE_MS = 3_600_000;

export interface ConnectionOptions {
  origin: string;
  /** Most connections at once. */
  most: number;
  /** False where each connection serves only one request. */
  keepAlive: boolean;
  tls: TlsOptions;
}

/**
 * Connections to one server, with one request at a time on each. Idle ones form a stack, so that the one used last,
 * whose buffers are warm, is next.
 */
export class Connections {
  /** Number of sockets opened so far. */
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

  /** Opens connections. Resolves to the number of open ones, which is smaller where the server refuses some. */
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

  /** A connection for one request; null where all are in use. */
  acquire(): Client | null {
    const idle = this.#idle.pop();
    if (idle !== undefined) return idle;
    return this.#all.size < this.#options.most ? this.#newClient() : null;
  }

  /** Releases a connection after its request. */
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
      // The worker has its own time limits.
      headersTimeout: 0,
      bodyTimeout: 0,
      keepAliveTimeout: IDLE_MS,
      keepAliveMaxTimeout: IDLE_MS,
      connect: (options, callback) => this.#handOver(options, callback),
    });
    this.#all.add(client);
    return client;
  }

  /** Passes on a socket that is already open, else a new one. */
  #handOver(options: buildConnector.Options, callback: buildConnector.Callback): void {
    for (let socket = this.#stock.pop(); socket !== undefined; socket = this.#stock.pop()) {
      if (!socket.destroyed && socket.readable) {
        // The client accepts no answer while it is asking.
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

/** Form of an IPv6 address that sockets take. */
function unbracketed(hostname: string): string {
  return hostname.startsWith('[') ? hostname.slice(1, -1) : hostname;
}
