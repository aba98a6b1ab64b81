import { constants, type ServerHttp2Session } from 'node:http2';

/**
 * Calls that a connection may have at once before one of them is let in. HTTP/2 clients assume this number
 * before they receive one.
 */
const FIRST_STREAMS = 100;
/** Connections without a call that was let in, beyond which the oldest ones are closed. */
const MAX_UNKNOWN = 256;
/** Milliseconds that each of them has for its first call, however many there are. */
const GRACE_MS = 1000;

/** Calls that a new connection may have at once. @param most of one that is known */
export const firstStreams = (most: number) => Math.min(FIRST_STREAMS, most);

/**
 * Separates connections whose client has had a call admitted from unknown ones. The latter may have fewer
 * calls at once and are few, since clients without a key can open any number of connections.
 *
 *   opened -> unknown --- a call is let in ---> known: all of its calls at once
 *               '-- too many, and it is the oldest --> closed
 */
export class KnownSessions {
  readonly #maxStreams: number;
  /** When each was opened, the oldest first. */
  readonly #unknown = new Map<ServerHttp2Session, number>();
  #timer: NodeJS.Timeout | undefined;

  /** @param maxStreams calls that a connection may have at once */
  constructor(maxStreams: number) {
    this.#maxStreams = maxStreams;
  }

  add(session: ServerHttp2Session): void {
    this.#unknown.set(session, performance.now());
    session.once('close', () => this.#unknown.delete(session));
    if (this.#unknown.size > MAX_UNKNOWN) this.#closeOldest();
  }

  /** A call of it was let in. */
  know(session: ServerHttp2Session): void {
    if (!this.#unknown.delete(session) || session.destroyed) return;
    if (this.#maxStreams > FIRST_STREAMS) session.settings({ maxConcurrentStreams: this.#maxStreams });
  }

  isKnown(session: ServerHttp2Session): boolean {
    return !this.#unknown.has(session);
  }

  close(): void {
    clearTimeout(this.#timer);
  }

  #closeOldest(): void {
    clearTimeout(this.#timer);
    for (const [session, sinceMs] of this.#unknown) {
      if (this.#unknown.size <= MAX_UNKNOWN) return;
      const restMs = sinceMs + GRACE_MS - performance.now();
      if (restMs > 0) {
        this.#timer = setTimeout(() => this.#closeOldest(), Math.ceil(restMs));
        return;
      }
      this.#unknown.delete(session);
      endSession(session);
    }
  }
}

/** Ends a connection with a notice to its client that it asks too much. */
export function endSession(session: ServerHttp2Session): void {
  if (session.destroyed) return;
  session.goaway(constants.NGHTTP2_ENHANCE_YOUR_CALM);
  session.destroy();
}
