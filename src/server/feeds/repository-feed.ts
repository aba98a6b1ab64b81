import { DEFAULT_FEED_OPTIONS, type EventListener, type FeedOptions } from './model-feed.js';
import { type ModelsSource, modelsEventOf } from './models-event-of.js';

const NOTHING: ModelsSource = { rows: () => [], loaded: () => [] };

/**
 * Sends what the models of a repository do, of every kind, to any number of listeners; an event is written
 * once for all. While there is a listener, the models are read a few times a second, whatever their load, and
 * an event is sent after a change or a heartbeat's time without one. Without a listener no timer runs and
 * nothing is read.
 *
 *   event: models       see models-event.ts
 */
export class RepositoryFeed {
  readonly #source: ModelsSource;
  readonly #options: Pick<FeedOptions, 'modelsIntervalMs' | 'heartbeatMs'>;
  readonly #listeners = new Set<EventListener>();
  #timer: NodeJS.Timeout | null = null;
  #latest = '';
  #sentMs = 0;

  /** @param source the repository; null: there is none, and no models are reported */
  constructor(source: ModelsSource | null, options: Partial<FeedOptions> = {}) {
    this.#source = source ?? NOTHING;
    this.#options = { ...DEFAULT_FEED_OPTIONS, ...options };
  }

  get numListeners(): number {
    return this.#listeners.size;
  }

  /** Sends the listener how things are at once, and then every event until the returned function is called. */
  subscribe(listener: EventListener): () => void {
    this.#listeners.add(listener);
    if (this.#timer === null) {
      this.#timer = setInterval(() => this.#look(), this.#options.modelsIntervalMs).unref();
      this.#latest = '';
      this.#look();
    } else listener(eventOf(this.#latest, Date.now()));
    return () => this.#unsubscribe(listener);
  }

  #unsubscribe(listener: EventListener): void {
    this.#listeners.delete(listener);
    if (this.#listeners.size > 0 || this.#timer === null) return;
    clearInterval(this.#timer);
    this.#timer = null;
  }

  #look(): void {
    const timeMs = Date.now();
    const told = JSON.stringify(modelsEventOf(this.#source, timeMs));
    const isRecent = performance.now() - this.#sentMs < this.#options.heartbeatMs;
    if (told === this.#latest && isRecent) return;
    this.#latest = told;
    this.#sentMs = performance.now();
    const event = eventOf(told, timeMs);
    for (const listener of [...this.#listeners]) listener(event);
  }
}

/** @param told the event's JSON without its version and time */
function eventOf(told: string, timeMs: number): string {
  return `event: models\ndata: {"v":1,"timeMs":${timeMs},${told.slice(1)}\n\n`;
}
