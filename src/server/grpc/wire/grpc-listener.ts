import {
  constants,
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
  /**
   * A call has begun. @param isSurplus its connection exceeds the limit: the call is refused with that reason
   */
  onStream(stream: ServerHttp2Stream, headers: IncomingHttpHeaders, isSurplus: boolean): void;
}

/**
 * Connections beyond the limit that are accepted to refuse their calls with a reason; further ones are closed
 * silently.
 */
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

  /**
   * Accepts no more connections, sends clients away, and ends once their calls have ended, or after
   * `limitMs`.
   */
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

/** Milliseconds without a frame after which a client is asked whether it is still there. */
const SILENCE_MS = 60_000;
/** Milliseconds that it may take to answer: then it is gone. */
const ANSWER_MS = 20_000;
/** Pings of a client within a time, beyond which its connection is ended. Clients measure the network by some each second. */
const MAX_PINGS = 100;
const PINGS_MS = 10_000;

/**
 * Ends a connection whose client is gone without a word, so that it does not count for ever, and one whose client does nothing but
 * ask whether the server is there.
 */
function guardSession(session: ServerHttp2Session): void {
  const ping = () => {
    if (session.destroyed) return;
    const timer = setTimeout(() => session.destroy(), ANSWER_MS);
    const isSent = session.ping((error) => {
      clearTimeout(timer);
      if (error === null) session.setTimeout(SILENCE_MS);
    });
    if (!isSent) clearTimeout(timer);
  };
  session.setTimeout(SILENCE_MS, ping);
  let pings = 0;
  let sinceMs = performance.now();
  session.on('ping', () => {
    const nowMs = performance.now();
    if (nowMs - sinceMs > PINGS_MS) {
      sinceMs = nowMs;
      pings = 0;
    }
    if (++pings <= MAX_PINGS) return;
    // Clients of gRPC know this text, and ping less often when they have read it.
    session.goaway(constants.NGHTTP2_ENHANCE_YOUR_CALM, 0, Buffer.from('too_many_pings'));
    session.destroy();
  });
}
