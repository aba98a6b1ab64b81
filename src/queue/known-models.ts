import { messageOf } from '../../base/error-text.js';
import type { ModelCard } from '../../cluster/nats/beat.js';
import { isStale, type KnownModel, type KnownRecords } from './known-records.js';
import { MAX_MODELS, type ServedCard } from './learned-models.js';

/** The models of a gateway, as those that are kept are held to them. */
export interface ServingKnown {
  /** What it serves. */
  served(): readonly ServedCard[];
  /** Serves a model that has no worker. */
  onKnown(card: ModelCard, read: (name: string, offset: number) => Promise<Uint8Array>): void;
  /** Serves it no more, unless it has a worker. */
  forget(name: string): void;
}

export interface KnownModelsOptions {
  records: KnownRecords;
  serving: () => ServingKnown;
  onWarning: (message: string) => void;
  /** Most models that are kept. */
  maxModels?: number;
}

/** Milliseconds between two looks at what is kept. */
const LOOK_MS = 5_000;

/**
 * Models outlive their last worker and the gateway that learned them: what it serves is kept, and what is
 * kept is served, here and at the other gateways, until its record is removed.
 */
export class KnownModels {
  readonly #options: KnownModelsOptions;
  /**
   * Names whose records were there, in the store of this name: one that is missing then was removed
   * deliberately.
   */
  readonly #confirmed = new Set<string>();
  #epoch: string | null = null;
  #looking: Promise<void> | null = null;
  #hasFailed = false;
  #timer: NodeJS.Timeout | null = null;
  #onLooked: () => void = () => {};
  /** Resolves after the first look. */
  readonly firstLook = new Promise<void>((resolve) => {
    this.#onLooked = resolve;
  });

  constructor(options: KnownModelsOptions) {
    this.#options = options;
  }

  /** Looks now, and again and again. */
  start(): void {
    this.#timer = setInterval(() => void this.look(), LOOK_MS).unref();
    void this.look().then(this.#onLooked);
  }

  close(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
  }

  /** Never rejects. */
  look(): Promise<void> {
    this.#looking ??= this.#look()
      .then(
        () => {
          this.#hasFailed = false;
        },
        (error: unknown) => this.#warn(error),
      )
      .finally(() => {
        this.#looking = null;
      });
    return this.#looking;
  }

  #warn(error: unknown): void {
    if (!this.#hasFailed)
      this.#options.onWarning(`Models without workers cannot be kept: ${messageOf(error)}`);
    this.#hasFailed = true;
  }

  async #look(): Promise<void> {
    const { records } = this.#options;
    const serving = this.#options.serving();
    const { epoch, models } = await records.list();
    if (epoch === null || epoch !== this.#epoch) this.#confirmed.clear();
    this.#epoch = epoch ?? (await records.begin());
    const kept = new Map(models.map((model) => [model.card.name, model]));
    const served = serving.served();
    for (const one of served) await this.#hold(one, kept);
    const names = new Set(served.map(({ card }) => card.name));
    for (const { card } of models) if (!names.has(card.name)) serving.onKnown(card, records.reader(card));
  }

  /** Holds a model that is served to what is kept. */
  async #hold({ card, folder, numWorkers }: ServedCard, kept: Map<string, KnownModel>): Promise<void> {
    const { records, serving } = this.#options;
    const { name } = card;
    const known = kept.get(name);
    if (known !== undefined) {
      this.#confirmed.add(name);
      if (numWorkers > 0 && isStale(known, card, Date.now())) await records.keep(card, folder);
      return;
    }
    if (numWorkers === 0 && this.#confirmed.delete(name)) {
      serving().forget(name);
      return;
    }
    await this.#makeRoom(kept);
    await records.keep(card, folder);
  }

  /** Forgets the model that has been without a worker for longest, where there are too many. */
  async #makeRoom(kept: Map<string, KnownModel>): Promise<void> {
    const { records, maxModels = MAX_MODELS } = this.#options;
    if (kept.size < maxModels) return;
    const [oldest] = [...kept.values()].sort((a, b) => a.seenMs - b.seenMs);
    await records.remove(oldest!.key);
    kept.delete(oldest!.card.name);
    this.#confirmed.delete(oldest!.card.name);
  }
}
