import {
  type Formation,
  type FormationEnd,
  type FormationRow,
  QUANTILES_MS,
} from '../../../callbacks/formation.js';
import type { ModelWatch } from '../../serving/served-model.js';

export interface FeedOptions {
  /** Least milliseconds between two `stats` events. */
  statsIntervalMs: number;
  /** Milliseconds between two looks at all models, each of which may be a `models` event. */
  modelsIntervalMs: number;
  /** Milliseconds of silence after which the last formation is sent again. */
  heartbeatMs: number;
}

export const DEFAULT_FEED_OPTIONS: Readonly<FeedOptions> = {
  statsIntervalMs: 200,
  modelsIntervalMs: 500,
  heartbeatMs: 5_000,
};

/** Receives a server-sent event as text. */
export type EventListener = (event: string) => void;

export interface Subscription {
  /** True where the names that clients gave their requests are shown; else they are blank. */
  showsLabels: boolean;
  /** Called when the model is no longer served: no event follows. */
  onEnd?: () => void;
}

/**
 * Sends the events of one model to any number of listeners; an event is written once for all listeners with the same
 * rights. Without a listener nothing is asked of the engine and no timer runs.
 *
 *   event: stats        the batch manager's JSON, when an iteration has been; none while the engine is idle
 *   event: formation    the requests in flight; repeated with a new time as a heartbeat when nothing else was sent
 */
export class ModelFeed {
  readonly #model: string;
  readonly #watch: ModelWatch;
  readonly #options: FeedOptions;
  readonly #listeners = new Map<EventListener, Subscription>();
  #stop: (() => void) | null = null;
  #formation: Formation | null = null;
  /** When the engine reported it, in milliseconds since 1970: a repeated one has a later time. */
  #toldMs = 0;
  #lastEventMs = 0;
  #statsTimer: NodeJS.Timeout | null = null;
  #lastStatsMs = Number.NEGATIVE_INFINITY;

  constructor(model: string, watch: ModelWatch, options: Partial<FeedOptions> = {}) {
    this.#model = model;
    this.#watch = watch;
    this.#options = { ...DEFAULT_FEED_OPTIONS, ...options };
  }

  /** Statistics of the latest iteration, with the name of the model. */
  stats(): string {
    return `{"model":${JSON.stringify(this.#model)},${this.#watch.statsJson().slice(1)}`;
  }

  get numListeners(): number {
    return this.#listeners.size;
  }

  /** Sends the listener the present formation at once, and then every event until the returned function is called. */
  subscribe(listener: EventListener, subscription: Subscription = { showsLabels: true }): () => void {
    this.#listeners.set(listener, subscription);
    if (this.#stop === null) this.#start();
    else if (this.#formation !== null) listener(this.#formationEvent(this.#formation, subscription));
    return () => this.unsubscribe(listener);
  }

  unsubscribe(listener: EventListener): void {
    this.#listeners.delete(listener);
    if (this.#listeners.size === 0) this.#stop?.();
  }

  /** Ends the feed of a model that is no longer served. */
  end(): void {
    const subscriptions = [...this.#listeners.values()];
    this.#listeners.clear();
    this.#stop?.();
    for (const { onEnd } of subscriptions) onEnd?.();
  }

  #start(): void {
    const heartbeat = setInterval(() => this.#beat(), this.#options.heartbeatMs).unref();
    const unwatch = this.#watch.watchFormation((formation) => {
      this.#formation = formation;
      this.#toldMs = formation.timeMs;
      this.#emitFormation(formation);
    });
    const unstats = this.#watch.onStats(() => this.#noteStats());
    this.#stop = () => {
      clearInterval(heartbeat);
      if (this.#statsTimer !== null) clearTimeout(this.#statsTimer);
      this.#statsTimer = null;
      unwatch();
      unstats();
      this.#formation = null;
      this.#stop = null;
    };
  }

  /** Notes new statistics. The first are sent at once, later ones after the interval, and the last ones in any case. */
  #noteStats(): void {
    if (this.#statsTimer !== null) return;
    const waitMs = this.#lastStatsMs + this.#options.statsIntervalMs - performance.now();
    if (waitMs <= 0) this.#emitStats();
    else this.#statsTimer = setTimeout(() => this.#emitStats(), waitMs).unref();
  }

  #emitStats(): void {
    this.#statsTimer = null;
    this.#lastStatsMs = performance.now();
    const event = `event: stats\ndata: ${this.stats()}\n\n`;
    this.#emit(() => event);
  }

  #beat(): void {
    const silentMs = performance.now() - this.#lastEventMs;
    if (this.#formation === null || silentMs < this.#options.heartbeatMs / 2) return;
    this.#formation = repeated(this.#formation, Date.now(), this.#toldMs);
    this.#emitFormation(this.#formation);
  }

  #emitFormation(formation: Formation): void {
    const written = new Map<boolean, string>();
    this.#emit((subscription) => {
      const event = written.get(subscription.showsLabels) ?? this.#formationEvent(formation, subscription);
      written.set(subscription.showsLabels, event);
      return event;
    });
  }

  #formationEvent(formation: Formation, { showsLabels }: Subscription): string {
    const shown = showsLabels ? formation : withoutLabels(formation);
    return `event: formation\ndata: ${JSON.stringify({ model: this.#model, ...shown })}\n\n`;
  }

  #emit(eventFor: (subscription: Subscription) => string): void {
    this.#lastEventMs = performance.now();
    for (const [listener, subscription] of [...this.#listeners]) listener(eventFor(subscription));
  }
}

/** The formation without the names by which others could recognise requests. */
function withoutLabels(formation: Formation): Formation {
  const requests = formation.requests.map((row) => row.with(1, '') as FormationRow);
  const ended = formation.ended.map((row) => row.with(1, '') as FormationEnd);
  return { ...formation, requests, ended };
}

/** The formation at a later time: states stay, events were already sent, and latencies are forgotten when they are old. */
function repeated(formation: Formation, timeMs: number, toldMs: number): Formation {
  const sinceMs = timeMs - formation.timeMs;
  const requests = formation.requests.map((row) => row.with(3, row[3] + sinceMs) as FormationRow);
  const isOld = timeMs - toldMs >= QUANTILES_MS;
  const latency = isOld ? { firstToken: null, interToken: null } : formation.latency;
  return { ...formation, timeMs, requests, ended: [], steps: [], longestIterationMs: 0, latency };
}
