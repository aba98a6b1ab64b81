import { engineName } from '../../serving/adapters/served-adapters.js';
import { followModels, type ModelDirectory } from '../../serving/model-directory.js';
import type { ServedGenerator } from '../../serving/served-model.js';
import { type EventListener, type FeedOptions, ModelFeed, type Subscription } from './model-feed.js';

/** Feeds of all models that generate text, as these come and go. */
export class ModelFeeds {
  readonly #feeds = new Map<string, ModelFeed>();
  /** Listeners to all models, also those added later. */
  readonly #listenersOfAll = new Map<EventListener, Subscription>();

  constructor(models: ModelDirectory, options?: Partial<FeedOptions>) {
    followModels(models, ({ kind, model }) => {
      if (model.kind !== 'generator') return;
      if (kind === 'added') this.#add(model, options);
      if (kind === 'removed') this.#remove(model);
    });
  }

  /** Feed of a served model; an adapter's is that of its base. */
  of(model: ServedGenerator): ModelFeed {
    return this.#feeds.get(engineName(model))!;
  }

  /**
   * Subscribes the listener to every model, from the time when it is added until it is removed; see
   * ModelFeed.subscribe.
   */
  subscribe(listener: EventListener, subscription: Subscription): () => void {
    this.#listenersOfAll.set(listener, subscription);
    for (const feed of this.#feeds.values()) feed.subscribe(listener, subscription);
    return () => {
      this.#listenersOfAll.delete(listener);
      for (const feed of this.#feeds.values()) feed.unsubscribe(listener);
    };
  }

  #add({ id, watch }: ServedGenerator, options: Partial<FeedOptions> | undefined): void {
    const feed = new ModelFeed(id, watch, options);
    this.#feeds.set(id, feed);
    for (const [listener, subscription] of this.#listenersOfAll) feed.subscribe(listener, subscription);
  }

  #remove({ id }: ServedGenerator): void {
    this.#feeds.get(id)?.end();
    this.#feeds.delete(id);
  }
}
