import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer, Server as TlsServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import type { ApiError } from '../web/errors.js';
import { NO_SNIFF, refusalOfHead, refuseWhatIsNoRequest } from '../web/raw-refusals.js';
import { isForWebSocket, Upgrade } from '../web/upgrade.js';
import { ConnectionLimit } from './connection-limit.js';
import { listenError } from './listen-address.js';

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
  // Of the Node.js that asks: others are handed back.
  shouldUpgradeCallback: isForWebSocket,
};

/** A certificate chain and its private key in PEM. */
export interface Certificate {
  cert: Buffer;
  key: Buffer;
}

export interface HttpSocketOptions {
  host: string;
  /** Port to listen on; 0 takes a free one. */
  port: number;
  /** For HTTPS. */
  tls?: Certificate | undefined;
  /** Most open connections; default 10,000. */
  maxConnections?: number | undefined;
}

/** Answers a request on a socket. */
export type AnswerHttp = (incoming: IncomingMessage, outgoing: ServerResponse) => void;

/**
 * The listening socket of a server, with the number of its connections. The handler of its requests may
 * change: while models load, it answers that they do.
 */
export class HttpSocket {
  readonly #server: Server;
  readonly #scheme: 'http' | 'https';
  readonly #limit: ConnectionLimit;
  #answer: AnswerHttp;
  /** See ConnectionLimitOptions. */
  onFewFiles: ((limit: number) => void) | undefined;

  private constructor(
    { tls, maxConnections = DEFAULT_MAX_CONNECTIONS }: HttpSocketOptions,
    answer: AnswerHttp,
  ) {
    this.#answer = answer;
    const take: AnswerHttp = (incoming, outgoing) => {
      // Whatever a client can make an answer of, a browser takes it for what it is said to be.
      outgoing.setHeader(...NO_SNIFF);
      this.#answer(incoming, outgoing);
    };
    const server =
      tls === undefined ? createServer(OPTIONS, take) : createTlsServer({ ...tls, ...OPTIONS }, take);
    // The length of all headers is limited; a limit on their number would drop some, perhaps Host or a key.
    server.maxHeadersCount = 0;
    this.#server = server;
    this.#scheme = tls === undefined ? 'http' : 'https';
    this.#limit = new ConnectionLimit(server, {
      most: maxConnections,
      isTls: tls !== undefined,
      onFewFiles: (limit) => this.onFewFiles?.(limit),
    });
    refuseWhatIsNoRequest(server);
    server.on('upgrade', (incoming: IncomingMessage, connection: Socket, head: Buffer) => {
      if (!isForWebSocket(incoming)) return handBack(server, incoming, connection, head);
      const upgrade = Upgrade.begin(incoming, connection, head);
      if (upgrade !== null) take(incoming, upgrade.outgoing);
    });
  }

  /** Starts to listen. @throws ListenError where the address cannot be listened on. */
  static async listen(options: HttpSocketOptions, answer: AnswerHttp): Promise<HttpSocket> {
    const socket = new HttpSocket(options, answer);
    const { host, port } = options;
    await new Promise<void>((resolve, reject) => {
      socket.#server.once('error', (error: NodeJS.ErrnoException) => reject(listenError(error, host, port)));
      socket.#server.listen(port, host, resolve);
    });
    return socket;
  }

  /** From now on requests are answered so. */
  answerWith(answer: AnswerHttp): void {
    this.#answer = answer;
  }

  /** Connections that are made from now on get this certificate; without TLS there is none. */
  certify(tls: Certificate): void {
    if (this.#server instanceof TlsServer) this.#server.setSecureContext(tls);
  }

  /** Why a request is refused before anything answers it; null: it is not. */
  refusalOf(incoming: IncomingMessage): ApiError | null {
    return refusalOfHead(incoming) ?? this.#limit.refusalOf(incoming);
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get url(): string {
    const { address, family, port } = this.#server.address() as AddressInfo;
    return `${this.#scheme}://${family === 'IPv6' ? `[${address}]` : address}:${port}`;
  }

  /** Cuts the remaining connections. */
  async close(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    this.#server.closeAllConnections();
    await closed;
  }
}

/** Headers of an offer that is declined. `http2-settings` goes with that of HTTP/2. */
const DECLINED = new Set(['upgrade', 'http2-settings']);

/**
 * Declines an upgrade: the request goes back to the server, as if it had come without that offer. Clients that would rather speak HTTP/2
 * send it along with ordinary requests, bodies too. From release 24.9 on Node.js asks before it takes such a request out of its own hands.
 */
function handBack(server: Server, incoming: IncomingMessage, connection: Socket, head: Buffer): void {
  const { method, url, httpVersion, rawHeaders } = incoming;
  let text = `${method} ${url} HTTP/${httpVersion}\r\n`;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]!;
    const lower = name.toLowerCase();
    if (DECLINED.has(lower)) continue;
    const value = lower === 'connection' ? withoutDeclined(rawHeaders[i + 1]!) : rawHeaders[i + 1]!;
    if (value !== '') text += `${name}: ${value}\r\n`;
  }
  // Node.js reads headers as latin1.
  connection.unshift(Buffer.concat([Buffer.from(`${text}\r\n`, 'latin1'), head]));
  server.emit(server instanceof TlsServer ? 'secureConnection' : 'connection', connection);
}

function withoutDeclined(value: string): string {
  const tokens = value.split(',').map((token) => token.trim());
  return tokens.filter((token) => token !== '' && !DECLINED.has(token.toLowerCase())).join(', ');
}
