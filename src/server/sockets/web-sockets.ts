import type { WebSocketServer } from 'ws';
import { MAX_INT32 } from '../../../base/int32.js';
import type { Upgrade } from '../web/upgrade.js';

export interface WebSocketsOptions {
  /** Bytes of the longest message, and of the longest frame. */
  maxMessageBytes: number;
  /** A request on a socket has begun; returns its end. */
  beginWork(): () => void;
}

/**
 * Parts of a message, by frames and by reads from the socket, that wait for its end: each takes some hundred
 * bytes in addition to its content. A message of the default length in packets of an Ethernet has fewer.
 */
const MAX_FRAGMENTS = 4096;
const MAX_CHUNKS = 64 * 1024;
/** Milliseconds that a client may take to close its end. */
const CLOSE_MS = 5000;
/** Milliseconds that it may take when the server ends. */
const LAST_CLOSE_MS = 1000;

/** The open WebSockets of a server. Nothing is compressed: a short message could become a very long one. */
export class WebSockets {
  readonly #options: WebSocketsOptions;
  #server: WebSocketServer | null = null;

  constructor(options: WebSocketsOptions) {
    this.#options = options;
  }

  /** Makes a socket of the connection of an upgrade that the app has accepted, and begins to serve it. */
  async open(upgrade: Upgrade): Promise<void> {
    this.#server ??= await this.#load();
    const serve = upgrade.handOver();
    if (serve === null) return;
    const { incoming, connection, head } = upgrade;
    this.#server.handleUpgrade(incoming, connection, head, (socket) =>
      serve({ socket, connection, beginWork: this.#options.beginWork }),
    );
  }

  /** The library is loaded for the first socket: most servers have none. */
  async #load(): Promise<WebSocketServer> {
    const { WebSocketServer } = await import('ws');
    return new WebSocketServer({
      noServer: true,
      perMessageDeflate: false,
      maxPayload: Math.min(this.#options.maxMessageBytes, MAX_INT32),
      maxFragments: MAX_FRAGMENTS,
      maxBufferedChunks: MAX_CHUNKS,
      // A client that sends pings and reads nothing would fill the memory with their answers.
      autoPong: false,
      closeTimeout: CLOSE_MS,
    } as ConstructorParameters<typeof WebSocketServer>[0]);
  }

  /** Ends all sockets; cuts those whose clients do not close theirs in time. */
  async close(): Promise<void> {
    const sockets = [...(this.#server?.clients ?? [])];
    if (sockets.length === 0) return;
    const closed = sockets.map((socket) => new Promise((resolve) => socket.once('close', resolve)));
    for (const socket of sockets) {
      socket.resume();
      socket.close(1001, 'The server is shutting down.');
    }
    const timer = setTimeout(() => {
      for (const socket of sockets) socket.terminate();
    }, LAST_CLOSE_MS);
    await Promise.all(closed);
    clearTimeout(timer);
  }
}
