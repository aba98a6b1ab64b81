import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { getRequestListener } from '@hono/node-server';
import type { createApp } from './app.js';
import { ConnectionLimit } from './connection-limit.js';
import type { InferLane } from './kserve/infer-lane.js';
import { answerAfterBody } from './late-body.js';
import { listenError } from './listen-address.js';
import { noteAnswer, notHttp, refusalOfHead, refuse, refuseWhatIsNoRequest } from './raw-refusals.js';
import { RequestTurns } from './request-turns.js';
import type { ServerState } from './server-state.js';

/**
 * Milliseconds that an idle connection is kept: longer than common proxies do, so that this side never cuts a
 * connection in use.
 */
const KEEP_ALIVE_MS = 75_000;
/**
 * Most milliseconds from a connection, or from the end of the request before, to the end of a request's headers; then
 * 408.
 */
const HEADERS_MS = 60_000;
/** Most milliseconds to the end of its body. A body that stalls is refused earlier, by the app. */
const REQUEST_MS = 300_000;
/** Milliseconds between two checks of these limits. */
const CHECK_MS = 15_000;
const DEFAULT_MAX_CONNECTIONS = 10_000;

const OPTIONS = {
  keepAliveTimeout: KEEP_ALIVE_MS,
  headersTimeout: HEADERS_MS,
  requestTimeout: REQUEST_MS,
  connectionsCheckingInterval: CHECK_MS,
  // Node's refusal would have no body: refusalOfHead makes one.
  requireHostHeader: false,
};

export interface HttpServerOptions {
  app: ReturnType<typeof createApp>;
  /** The short way of some requests; default: all go to the app. */
  lane?: InferLane | undefined;
  state: ServerState;
  host: string;
  /** Port to listen on; 0 takes a free one. */
  port: number;
  /** Certificate chain and private key in PEM, for HTTPS. */
  tls?: { cert: Buffer; key: Buffer } | undefined;
  /** Most open connections; default 10,000. */
  maxConnections?: number | undefined;
  /** Milliseconds that a client may leave data unread before it is cut off. */
  stallLimitMs?: number | undefined;
  /** Called when a client is cut off. */
  onStall?: (() => void) | undefined;
}

/** Listening socket of an app, with the exchanges on it. */
export class HttpServer {
  readonly #server: Server;
  readonly #state: ServerState;
  readonly #scheme: 'http' | 'https';
  readonly #stallLimitMs: number | undefined;
  readonly #onStall: (() => void) | undefined;
  #active = 0;
  #onIdle: (() => void) | null = null;

  private constructor(server: Server, { state, tls, stallLimitMs, onStall }: HttpServerOptions) {
    this.#server = server;
    this.#state = state;
    this.#scheme = tls === undefined ? 'http' : 'https';
    this.#stallLimitMs = stallLimitMs;
    this.#onStall = onStall;
  }

  /** Follows an exchange until its last byte is out, or its client has left. */
  #follow(outgoing: ServerResponse): void {
    this.#active++;
    if (this.#stallLimitMs !== undefined) cutWhereStalled(outgoing, this.#stallLimitMs, this.#onStall);
    outgoing.once('close', () => {
      this.#active--;
      if (this.#active === 0) this.#onIdle?.();
    });
  }

  /** Starts to listen. @throws ListenError where the address cannot be listened on. */
  static async listen(options: HttpServerOptions): Promise<HttpServer> {
    const { app, lane, host, port, tls, maxConnections = DEFAULT_MAX_CONNECTIONS } = options;
    const listener = getRequestListener(app.fetch, {
      overrideGlobalObjects: false,
      // This is the host of an HTTP/1.0 request that names none.
      hostname: 'localhost',
      // A request that the library rejects, such as one with a malformed address, never reaches the app.
      errorHandler: () => notHttp('the address or a header is malformed').response(),
    });
    const turns = new RequestTurns((incoming, outgoing) => {
      running.#follow(outgoing);
      noteAnswer(outgoing);
      const refusal = refusalOfHead(incoming) ?? limit.refusalOf(incoming);
      if (refusal !== null) {
        refuse(outgoing, refusal);
        return;
      }
      answerAfterBody(incoming, outgoing);
      if (!lane?.take(incoming, outgoing)) void listener(incoming, outgoing);
    });
    const answer = (incoming: IncomingMessage, outgoing: ServerResponse) => turns.take(incoming, outgoing);
    const server =
      tls === undefined ? createServer(OPTIONS, answer) : createTlsServer({ ...tls, ...OPTIONS }, answer);
    // The length of all headers is limited; a limit on their number would drop some, perhaps Host or a key.
    server.maxHeadersCount = 0;
    const limit = new ConnectionLimit(server, maxConnections, tls !== undefined);
    refuseWhatIsNoRequest(server);
    const running = new HttpServer(server, options);
    await new Promise<void>((resolve, reject) => {
      server.once('error', (error: NodeJS.ErrnoException) => reject(listenError(error, host, port)));
      server.listen(port, host, resolve);
    });
    return running;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get url(): string {
    const { address, family, port } = this.#server.address() as AddressInfo;
    return `${this.#scheme}://${family === 'IPv6' ? `[${address}]` : address}:${port}`;
  }

  /**
   * Lets the present answers end, for at most `limitMs`. The socket stays open meanwhile, so that /health can say 503
   * and new requests get a proper refusal.
   * @returns true where all of them ended in time.
   */
  async drain(limitMs: number): Promise<boolean> {
    this.#state.drain(limitMs);
    if (this.#active > 0) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, limitMs);
        this.#onIdle = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
    return this.#active === 0;
  }

  /** Cuts the remaining connections. */
  async close(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    this.#server.closeAllConnections();
    await closed;
  }
}

/**
 * Cuts the connection of a client that has left data unread for `limitMs`. The event stream holds data back for a slow
 * reader, but data that has left the stream waits here. A client that reads slowly is not cut, nor one that waits for
 * an answer.
 */
function cutWhereStalled(outgoing: ServerResponse, limitMs: number, onStall: (() => void) | undefined): void {
  outgoing.setTimeout(limitMs, () => {
    // A stream that is cut off is counted there.
    if (outgoing.destroyed || (outgoing.socket?.writableLength ?? 0) === 0) return;
    onStall?.();
    outgoing.destroy();
  });
}
