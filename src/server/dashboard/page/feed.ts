import type { Formation } from '../../../../callbacks/formation.js';
import { Emitter } from './emitter.js';
import { type FeedOptions, type FeedState, LiveStream } from './live-stream.js';
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

export interface FeedEvents {
  formation: FormationEvent;
  stats: StatsEvent;
  state: FeedState;
  /** Emitted for another model or a new connection: its events do not continue earlier ones. */
  reset: { model: string | null };
  /** Emitted where the server does not know the model: it was restarted with other models. */
  gone: { model: string };
}

/**
 * Live events of one model, from GET /stats/stream. Connects again by itself, with growing waits, until `close`.
 *
 *   const leave = feed.on('formation', ({ requests, blocks }) => ...);     each about five times a second
 */
export class Feed extends Emitter<FeedEvents> {
  readonly #stream: LiveStream;
  #model: string | null = null;
  #formation: FormationEvent | null = null;

  constructor(session: Session, options: Partial<FeedOptions> = {}) {
    super();
    this.#stream = new LiveStream(session, options);
    this.#stream.on('begin', () => {
      this.#formation = null;
      this.emit('reset', { model: this.#model });
    });
    this.#stream.on('state', (state) => this.emit('state', state));
    this.#stream.on('event', ({ name, data }) => this.#take(name, data));
    this.#stream.on('gone', () => {
      if (this.#model !== null) this.emit('gone', { model: this.#model });
    });
  }

  get model(): string | null {
    return this.#model;
  }

  get state(): FeedState {
    return this.#stream.state;
  }

  /** Latest formation of this connection; null before the first. */
  get formation(): FormationEvent | null {
    return this.#formation;
  }

  /** Begins to watch a model, or changes the one watched. */
  watch(model: string): void {
    this.#model = model;
    this.#stream.open(`stats/stream?model=${encodeURIComponent(model)}`);
  }

  /** Stops, with the state that says why no model can be watched. */
  hold(state: FeedState): void {
    this.#model = null;
    this.#stream.hold(state);
  }

  close(): void {
    this.#stream.close();
  }

  #take(name: string | undefined, data: string): void {
    if (name === 'stats') this.emit('stats', JSON.parse(data) as StatsEvent);
    if (name !== 'formation') return;
    this.#formation = JSON.parse(data) as FormationEvent;
    this.emit('formation', this.#formation);
  }
}
