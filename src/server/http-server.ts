import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import { getRequestListener } from '@hono/node-server';
import type { createApp } from './app.js';
import { listenError } from './listen-address.js';
import { ApiError } from './openai/errors.js';
import type { ServerState } from './server-state.js';

/** Longer than the idle limit of common proxies, so that it is never this side which cuts a connection in use. */
const KEEP_ALIVE_MS = 75_000;

export interface HttpServerOptions {
  app: ReturnType<typeof createApp>;
  state: ServerState;
  host: string;
  /** 0 takes a free port. */
  port: number;
  /** Certificate chain and private key in PEM: HTTPS. */
  tls?: { cert: Buffer; key: Buffer } | undefined;
  /** How long a client may leave what was sent to it unread before it is cut off. */
  stallLimitMs?: number | undefined;
  /** Called when one is. */
  onStall?: (() => void) | undefined;
}

/** The listening socket of an app, and the exchanges on it. */
export class HttpServer {
  readonly #server: Server;
  readonly #state: ServerState;
  readonly #scheme: 'http' | 'https';
  #active = 0;
  #onIdle: (() => void) | null = null;

  private constructor(server: Server, { state, tls, stallLimitMs, onStall }: HttpServerOptions) {
    this.#server = server;
    this.#state = state;
    this.#scheme = tls === undefined ? 'http' : 'https';
    server.on('request', (_, outgoing) => {
      this.#active++;
      if (stallLimitMs !== undefined) cutWhereStalled(outgoing, stallLimitMs, onStall);
      outgoing.once('close', () => {
        this.#active--;
        if (this.#active === 0) this.#onIdle?.();
      });
    });
  }

  /** @throws ListenError where the address cannot be listened on. */
  static async listen(options: HttpServerOptions): Promise<HttpServer> {
    const { app, host, port, tls } = options;
    const listener = getRequestListener(app.fetch, {
      overrideGlobalObjects: false,
      // What is no request to the library, such as one to an address that is none, never reaches the app.
      errorHandler: () => notHttp('the address or a header is malformed').response(),
    });
    const answer = (incoming: IncomingMessage, outgoing: ServerResponse) => void listener(incoming, outgoing);
    // The refusal would have no body; the listener refuses such a request too.
    const requireHostHeader = false;
    const server =
      tls === undefined
        ? createServer({ requireHostHeader }, answer)
        : createTlsServer({ ...tls, requireHostHeader }, answer);
    server.keepAliveTimeout = KEEP_ALIVE_MS;
    server.on('clientError', refuseRaw);
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
   * Lets the answers under way end, for at most `limitMs`. The socket stays open meanwhile, so that /health can say 503
   * and new requests get a proper refusal.
   * @returns whether all of them ended in time.
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

  /** Cuts what is left. */
  async close(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    this.#server.closeAllConnections();
    await closed;
  }
}

function notHttp(reason: string): ApiError {
  return new ApiError(400, `This is not a request that HTTP allows: ${reason}.`, { code: 'bad_request' });
}

/** What cannot be parsed has no response object: the refusal is written to the socket, which is then closed. */
function refuseRaw(error: NodeJS.ErrnoException, socket: Duplex): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
    return;
  }
  const [status, refusal] =
    error.code === 'HPE_HEADER_OVERFLOW'
      ? ['431 Request Header Fields Too Large', notHttp('its headers are too long')]
      : error.code === 'ERR_HTTP_REQUEST_TIMEOUT'
        ? ['408 Request Timeout', notHttp('it did not come in time')]
        : ['400 Bad Request', notHttp('it cannot be parsed')];
  const body = JSON.stringify(refusal.body());
  socket.end(
    `HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Type: application/json\r\n` +
      `Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
}

/**
 * Cuts the connection of a client that has left what was sent to it unread for `limitMs`: the event stream holds back
 * what it has for a reader that is behind, but whatever has left it waits here. A client that reads slowly is not cut,
 * and neither is one that waits for an answer.
 */
function cutWhereStalled(outgoing: ServerResponse, limitMs: number, onStall: (() => void) | undefined): void {
  outgoing.setTimeout(limitMs, () => {
    // A stream that is cut off is counted there.
    if (outgoing.destroyed || (outgoing.socket?.writableLength ?? 0) === 0) return;
    onStall?.();
    outgoing.destroy();
  });
}
