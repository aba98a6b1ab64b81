import {
  createSecureServer,
  createServer,
  type Http2SecureServer,
  type Http2Server,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2';
import type { AddressInfo } from 'node:net';
import type { Certificate } from '../../sockets/http-socket.js';
import { listenError } from '../../sockets/listen-address.js';
import { guardSession } from './guard-session.js';
import { endSession, firstStreams, KnownSessions } from './known-sessions.js';

export interface ListenerOptions {
  host: string;
  /** Port to listen on; 0 takes a free one. */
  port: number;
  /** undefined: HTTP/2 without TLS. */
  tls?: Certificate | undefined;
  /** Connections that may be open at once. */
  maxConnections: number;
  /** Calls that one of them may have at once, once one was let in; its client waits with more. */
  maxStreams: number;
  /** A call has begun. @param isSurplus its connection is one too many: the call is to be told so */
  onStream(stream: ServerHttp2Stream, headers: IncomingHttpHeaders, isSurplus: boolean): void;
}

/** Connections beyond the limit that are let in to be told so; further ones are closed without a word. */
const SURPLUS = 256;
/** Milliseconds that such a connection may stay. */
const SURPLUS_MS = 5000;
/** Bytes of all metadata of a call. */
const MAX_METADATA = 16 * 1024;
/**
 * Megabytes that Node.js keeps for one connection before it refuses its calls: what is written waits there, a part of a message of each call,
 * and its own limit of 10 is less than forty of those.
 */
const SESSION_MEGABYTES = 256;

/** Listens for connections of HTTP/2, each of which has any number of calls at once. */
export class GrpcListener {
  readonly #server: Http2Server | Http2SecureServer;
  readonly #sessions = new Set<ServerHttp2Session>();
  readonly #known: KnownSessions;
  readonly #scheme: 'grpc' | 'grpcs';

  private constructor(
    server: Http2Server | Http2SecureServer,
    { tls, maxConnections, maxStreams, onStream }: ListenerOptions,
  ) {
    this.#server = server;
    this.#scheme = tls === undefined ? 'grpc' : 'grpcs';
    this.#known = new KnownSessions(maxStreams);
    server.maxConnections = maxConnections + SURPLUS;
    server.on('session', (session: ServerHttp2Session) => {
      this.#sessions.add(session);
      const isSurplus = this.#sessions.size > maxConnections;
      session.on('close', () => this.#sessions.delete(session));
      // What a client sends that is no HTTP/2 ends its connection, and nothing else.
      session.on('error', () => session.destroy());
      guardSession(session);
      this.#known.add(session);
      if (isSurplus) endSoon(session);
      session.on('stream', (stream, headers) => onStream(stream, headers, isSurplus));
    });
  }

  /** Starts to listen. @throws ListenError where the address cannot be listened on */
  static async listen(options: ListenerOptions): Promise<GrpcListener> {
    const { host, port, tls, maxStreams } = options;
    const settings = {
      maxConcurrentStreams: firstStreams(maxStreams),
      maxHeaderListSize: MAX_METADATA,
      enablePush: false,
    };
    const given = { settings, maxSessionMemory: SESSION_MEGABYTES };
    const server =
      tls === undefined ? createServer(given) : createSecureServer({ ...tls, ...given, allowHTTP1: false });
    const listener = new GrpcListener(server, options);
    await new Promise<void>((resolve, reject) => {
      server.once('error', (error: NodeJS.ErrnoException) =>
        reject(listenError(error, host, port, '--grpc-port')),
      );
      server.listen(port, host, resolve);
    });
    return listener;
  }

  /** Connections that are made from now on get this certificate; without TLS there is none. */
  certify(tls: Certificate): void {
    if ('setSecureContext' in this.#server) this.#server.setSecureContext(tls);
  }

  /** A call of the connection was let in: it may have all of its calls at once. */
  know(session: ServerHttp2Session): void {
    this.#known.know(session);
  }

  isKnown(session: ServerHttp2Session): boolean {
    return this.#known.isKnown(session);
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get url(): string {
    const { address, family, port } = this.#server.address() as AddressInfo;
    return `${this.#scheme}://${family === 'IPv6' ? `[${address}]` : address}:${port}`;
  }

  /** Takes no more connections, tells clients to go elsewhere, and ends once their calls have ended, or after `limitMs`. */
  async close(limitMs: number): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    const timer = setTimeout(() => {
      for (const session of this.#sessions) session.destroy();
    }, limitMs);
    for (const session of this.#sessions) session.close();
    await closed;
    clearTimeout(timer);
    this.#known.close();
  }
}

function endSoon(session: ServerHttp2Session): void {
  const timer = setTimeout(() => endSession(session), SURPLUS_MS);
  session.once('close', () => clearTimeout(timer));
}
