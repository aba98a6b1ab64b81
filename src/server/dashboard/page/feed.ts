import { createParser } from 'eventsource-parser';
import type { Formation } from '../../../../callbacks/formation.js';
import { Emitter } from './emitter.js';
import { problemOf, retryAfterSeconds } from './problem.js';
import type { Session } from './session.js';

/** An event with the requests in flight of a model: see callbacks/formation.ts. */
export type FormationEvent = Formation & { model: string };

/** The batch manager's statistics of an iteration, by the names of the batch manager. */
export interface StatsEvent {
  model: string;
  'Active Request Count': number;
  'Context Requests': number;
  'Free KV cache blocks': number;
  'Generation Requests'?: number;
  'Iteration Counter': number;
  'Max KV cache blocks': number;
  'Max Request Count': number;
  'Paused Requests': number;
  'Scheduled Requests': number;
  'Tokens per KV cache block': number;
  'Total Context Tokens': number;
  'Used KV cache blocks': number;
  [name: string]: number | string | undefined;
}

export type FeedState =
  | { kind: 'connecting' }
  | { kind: 'live' }
  /** The feed was cut off or refused, and tries again at this time of performance.now's clock. */
  | { kind: 'waiting'; reason: string; retryAtMs: number }
  /** There is no model to watch. */
  | { kind: 'idle'; reason: string }
  /** The server wants a key: the feed goes on when the session is unlocked. */
  | { kind: 'locked' };

export interface FeedEvents {
  formation: FormationEvent;
  stats: StatsEvent;
  state: FeedState;
  /** Emitted for another model or a new connection: its events do not continue earlier ones. */
  reset: { model: string | null };
  /** Emitted where the server does not know the model: it was restarted with other models. */
  gone: { model: string };
}

export interface FeedOptions {
  /** Wait between attempts, which doubles from the first to maxWaitMs. */
  firstWaitMs: number;
  maxWaitMs: number;
  /** Milliseconds of silence after which the connection counts as dead: the server sends something every 5 seconds. */
  silenceLimitMs: number;
}

const OPTIONS: FeedOptions = { firstWaitMs: 500, maxWaitMs: 15_000, silenceLimitMs: 15_000 };

/**
 * Live events of one model, from GET /stats/stream. It is read with fetch and not with EventSource, which
 * cannot send a key. Connects again by itself, with growing waits, until `close`.
 *
 *   const leave = feed.on('formation', ({ requests, blocks }) => ...);     each about five times a second
 */
export class Feed extends Emitter<FeedEvents> {
  readonly #session: Session;
  readonly #options: FeedOptions;
  #model: string | null = null;
  #state: FeedState = { kind: 'connecting' };
  #formation: FormationEvent | null = null;
  #connection: AbortController | null = null;
  #retry: ReturnType<typeof setTimeout> | null = null;
  #failures = 0;

  constructor(session: Session, options: Partial<FeedOptions> = {}) {
    super();
    this.#session = session;
    this.#options = { ...OPTIONS, ...options };
    session.on('unlocked', () => {
      if (this.#model !== null && this.#state.kind !== 'connecting') this.#reconnect();
    });
  }

  get model(): string | null {
    return this.#model;
  }

  get state(): FeedState {
    return this.#state;
  }

  /** Latest formation of this connection; null before the first. */
  get formation(): FormationEvent | null {
    return this.#formation;
  }

  /** Begins to watch a model, or changes the one watched. */
  watch(model: string): void {
    this.#model = model;
    this.#reconnect();
  }

  /** Stops, with the state that says why no model can be watched. */
  hold(state: FeedState): void {
    this.close();
    this.#model = null;
    this.#setState(state);
  }

  /** Tries again at once, if the feed waits. */
  retryNow(): void {
    if (this.#state.kind === 'waiting') this.#reconnect();
  }

  close(): void {
    this.#connection?.abort();
    this.#connection = null;
    if (this.#retry !== null) clearTimeout(this.#retry);
    this.#retry = null;
  }

  #reconnect(): void {
    this.close();
    if (this.#model === null) return;
    this.#formation = null;
    this.emit('reset', { model: this.#model });
    this.#setState({ kind: 'connecting' });
    const connection = new AbortController();
    this.#connection = connection;
    void this.#read(connection, this.#model).then((end) => {
      // The feed was closed, or another connection has replaced this one.
      if (connection !== this.#connection) return;
      if (end.isLocked) this.#setState({ kind: 'locked' });
      else this.#wait(end.reason, end.retryAfterMs);
      if (end.isGone && this.#model !== null) this.emit('gone', { model: this.#model });
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
  async #read(connection: AbortController, model: string): Promise<StreamEnd> {
    let silence: ReturnType<typeof setTimeout> | null = null;
    const heard = () => {
      if (silence !== null) clearTimeout(silence);
      silence = setTimeout(() => connection.abort(), this.#options.silenceLimitMs);
    };
    try {
      heard();
      const path = `stats/stream?model=${encodeURIComponent(model)}`;
      const response = await this.#session.fetch(path, { signal: connection.signal });
      if (response.status === 401) return { ...cut(''), isLocked: true };
      if (!response.ok) return await refusal(response);
      this.#failures = 0;
      if (connection === this.#connection) this.#setState({ kind: 'live' });
      const parser = createParser({
        onEvent: ({ event, data }) => {
          if (connection === this.#connection) this.#take(event, data);
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

  #take(event: string | undefined, data: string): void {
    if (event === 'stats') this.emit('stats', JSON.parse(data) as StatsEvent);
    if (event !== 'formation') return;
    this.#formation = JSON.parse(data) as FormationEvent;
    this.emit('formation', this.#formation);
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
  return { ...cut(await problemOf(response)), isGone: response.status === 404, retryAfterMs };
}
