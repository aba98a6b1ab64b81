import { readFileSync } from 'node:fs';
import type { IncomingMessage, Server } from 'node:http';
import type { Socket } from 'node:net';
import { ApiError } from '../web/errors.js';

/**
 * Number of connections beyond the limit that are accepted to be refused with a reason; further ones are
 * closed silently.
 */
const SURPLUS = 256;
/** Milliseconds that such a connection may take to send its request. */
const SURPLUS_MS = 5_000;
const RETRY_AFTER_S = 5;
/** Files that the process may open besides connections: the system closes a connection without a word where there are none. */
const KEPT_FILES = 64;
/** Share of a low limit that is kept at most. */
const KEPT_SHARE = 1 / 8;
/** Share of the kept files for connections that are refused with a reason. */
const TOLD_SHARE = 1 / 2;
/** Milliseconds between two reports of a lack of files. */
const REPORT_MS = 60_000;

export interface ConnectionLimitOptions {
  /** Number of connections that may send requests. */
  most: number;
  isTls: boolean;
  /** Called, once a minute at most, when nearly as many files are open as may be. @param limit that number */
  onFewFiles?: (limit: number) => void;
}

/**
 * Limits the number of open connections, by a number of its own and by the files that the process may open, so that
 * idle ones cannot use these up. A file, a connection too, gets the lowest free number, so a high number means that
 * about as many are open.
 */
export class ConnectionLimit {
  readonly #options: ConnectionLimitOptions;
  readonly #fileLimit = openFileLimit();
  /** Connections that are counted: one whose offer to upgrade is declined comes again. */
  readonly #known = new WeakSet<Socket>();
  readonly #surplus = new WeakSet<Socket>();
  #open = 0;
  /** The latest connection has left too few files for others. */
  #hasFewFiles = false;
  #reportedMs = Number.NEGATIVE_INFINITY;

  constructor(server: Server, options: ConnectionLimitOptions) {
    this.#options = options;
    server.maxConnections = options.most + SURPLUS;
    server.on('connection', (socket: Socket) => this.#noteFile(socket));
    server.on(options.isTls ? 'secureConnection' : 'connection', (socket: Socket) => this.#note(socket));
  }

  #noteFile(socket: Socket): void {
    const limit = this.#fileLimit ?? Number.POSITIVE_INFINITY;
    const kept = Math.min(KEPT_FILES, limit * KEPT_SHARE);
    // It is an id of the system, where there is one.
    const { fd = -1 } = (socket as { _handle?: { fd?: number } })._handle ?? {};
    this.#hasFewFiles = fd >= limit - kept;
    if (fd >= limit - kept * TOLD_SHARE) socket.destroy();
    if (!this.#hasFewFiles || performance.now() - this.#reportedMs < REPORT_MS) return;
    this.#reportedMs = performance.now();
    this.#options.onFewFiles?.(limit);
  }

  #note(socket: Socket): void {
    if (socket.destroyed || this.#known.has(socket)) return;
    this.#known.add(socket);
    this.#open++;
    socket.once('close', () => this.#open--);
    if (this.#open <= this.#options.most && !this.#hasFewFiles) return;
    this.#surplus.add(socket);
    socket.setTimeout(SURPLUS_MS, () => socket.destroy());
  }

  /** Why a request on a surplus connection is refused; null: it is not. /live is answered in any case. */
  refusalOf({ socket, url }: IncomingMessage): ApiError | null {
    if (!this.#surplus.has(socket) || url === '/live') return null;
    const why =
      this.#open > this.#options.most
        ? `its ${this.#options.most} connections (--max-connections)`
        : 'as many connections as the system allows';
    return new ApiError(503, `This server has ${why}; try again later.`, {
      code: 'too_many_connections',
      headers: { 'retry-after': String(RETRY_AFTER_S) },
    });
  }
}

/**
 * Number of files, connections included, that this process may have open (ulimit -n); null where the system does not say.
 * Node.js raises the limit as far as it may when it starts.
 */
function openFileLimit(): number | null {
  if (process.platform !== 'linux') return null;
  try {
    const limit = Number(/^Max open files +(\d+)/m.exec(readFileSync('/proc/self/limits', 'latin1'))?.[1]);
    return Number.isNaN(limit) ? null : limit; // unlimited
  } catch {
    return null;
  }
}
