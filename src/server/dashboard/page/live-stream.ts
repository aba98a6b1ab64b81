import { createParser } from 'eventsource-parser';
import { Emitter } from './emitter.js';
import { retryAfterSeconds, saidOf } from './problem.js';
import type { Session } from './session.js';

export type FeedState =
  | { kind: 'connecting' }
  | { kind: 'live' }
  /** The feed was cut off or refused, and tries again at this time of performance.now's clock. */
  | { kind: 'waiting'; reason: string; retryAtMs: number }
  /** There is nothing to watch. */
  | { kind: 'idle'; reason: string }
  /** The model that the reader wants is not served any more. */
  | { kind: 'gone'; model: string }
  /** The server wants a key: the feed goes on when the session is unlocked. */
  | { kind: 'locked' };

export interface FeedOptions {
  /** Wait between attempts, which doubles from the first to maxWaitMs. */
  firstWaitMs: number;
  maxWaitMs: number;
  /** Milliseconds of silence after which the connection counts as dead: the server sends something every 5 seconds. */
  silenceLimitMs: number;
}

const OPTIONS: FeedOptions = { firstWaitMs: 500, maxWaitMs: 15_000, silenceLimitMs: 15_000 };

interface StreamEvents {
  /** An event of the server. */
  event: { name: string | undefined; data: string };
  state: FeedState;
  /** Emitted for each new connection: its events do not continue earlier ones. */
  begin: undefined;
  /** Emitted where the server does not know what was asked for. */
  gone: undefined;
}

/**
 * Server-sent events of one path. They are read with fetch and not with EventSource, which cannot send a key. Connects again by
 * itself, with growing waits, until `close`.
 */
export class LiveStream extends Emitter<StreamEvents> {
  readonly #session: Session;
  readonly #options: FeedOptions;
  #path: string | null = null;
  #state: FeedState = { kind: 'connecting' };
  #connection: AbortController | null = null;
  #retry: ReturnType<typeof setTimeout> | null = null;
  #failures = 0;

  constructor(session: Session, options: Partial<FeedOptions> = {}) {
    super();
    this.#session = session;
    this.#options = { ...OPTIONS, ...options };
    session.on('unlocked', () => {
      if (this.#path !== null && this.#state.kind !== 'connecting') this.#reconnect();
    });
  }

  get state(): FeedState {
    return this.#state;
  }

  /** Begins to read a path, in the place of the one that was read. */
  open(path: string): void {
    this.#path = path;
    this.#reconnect();
  }

  /** Stops, with the state that says why nothing can be read. */
  hold(state: FeedState): void {
    this.close();
    this.#path = null;
    this.#setState(state);
  }

  close(): void {
    this.#connection?.abort();
    this.#connection = null;
    if (this.#retry !== null) clearTimeout(this.#retry);
    this.#retry = null;
  }

  #reconnect(): void {
    this.close();
    if (this.#path === null) return;
    this.emit('begin', undefined);
    this.#setState({ kind: 'connecting' });
    const connection = new AbortController();
    this.#connection = connection;
    void this.#read(connection, this.#path).then((end) => {
      // The stream was closed, or another connection has replaced this one.
      if (connection !== this.#connection) return;
      if (end.isLocked) this.#setState({ kind: 'locked' });
      else this.#wait(end.reason, end.retryAfterMs);
      if (end.isGone) this.emit('gone', undefined);
    });
  }

  #wait(reason: string, retryAfterMs: number): void {
    const { firstWaitMs, maxWaitMs } = this.#options;
    const grown = Math.min(maxWaitMs, firstWaitMs * 2 ** this.#failures++);
    // A random factor keeps pages that were cut off together from coming back at once.
    const waitMs = Math.max(retryAfterMs, grown * (0.75 + Math.random() / 2));
    this.#setState({ kind: 'waiting', reason, retryAtMs: performance.now() + waitMs });
    this.#retry = setTimeout(() => this.#reconnect(), waitMs);
  }

  /** Reads until the stream ends in any way. */
  async #read(connection: AbortController, path: string): Promise<StreamEnd> {
    let silence: ReturnType<typeof setTimeout> | null = null;
    const heard = () => {
      if (silence !== null) clearTimeout(silence);
      silence = setTimeout(() => connection.abort(), this.#options.silenceLimitMs);
    };
    try {
      heard();
      const response = await this.#session.fetch(path, { signal: connection.signal });
      if (response.status === 401) return { ...cut(''), isLocked: true };
      if (!response.ok) return await refusal(response);
      this.#failures = 0;
      if (connection === this.#connection) this.#setState({ kind: 'live' });
      const parser = createParser({
        onEvent: ({ event, data }) => {
          if (connection === this.#connection) this.emit('event', { name: event, data });
        },
      });
      const decoder = new TextDecoder();
      for (const reader = response.body!.getReader(); ; ) {
        const { done, value } = await reader.read();
        if (done) return cut('The server closed the stream.');
        heard();
        parser.feed(decoder.decode(value, { stream: true }));
      }
    } catch {
      return cut(connection.signal.aborted ? 'The server fell silent.' : 'The server cannot be reached.');
    } finally {
      if (silence !== null) clearTimeout(silence);
    }
  }

  #setState(state: FeedState): void {
    this.#state = state;
    this.emit('state', state);
  }
}

interface StreamEnd {
  reason: string;
  isLocked: boolean;
  isGone: boolean;
  retryAfterMs: number;
}

function cut(reason: string): StreamEnd {
  return { reason, isLocked: false, isGone: false, retryAfterMs: 0 };
}

async function refusal(response: Response): Promise<StreamEnd> {
  const retryAfterMs = retryAfterSeconds(response) * 1000;
  return { ...cut(await saidOf(response)), isGone: response.status === 404, retryAfterMs };
}
