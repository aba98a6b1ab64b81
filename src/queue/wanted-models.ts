import type { ExpectedModels } from '../serving/expected-models.js';
import type { LearnedModels } from './learned-models.js';
import type { LoadingWorkers } from './loading-workers.js';

export interface WantedModelsOptions {
  learned: Pick<LearnedModels, 'served'>;
  loading: Pick<LoadingWorkers, 'of'>;
  expected: Pick<ExpectedModels, 'refused'>;
  /** Informs one of the workers that could load a model that it is wanted. */
  tell: (model: string) => void;
}

const LOOK_MS = 1_000;

/**
 * Informs workers that have several models which of them are wanted: requests wait for them, and no worker
 * has them, or loads them.
 */
export class WantedModels {
  readonly #options: WantedModelsOptions;
  readonly #refused = new Map<string, number>();
  readonly #timer: NodeJS.Timeout;

  constructor(options: WantedModelsOptions) {
    this.#options = options;
    this.#timer = setInterval(() => this.look(), LOOK_MS).unref();
  }

  look(): void {
    const { learned, loading, expected, tell } = this.#options;
    const wanted = new Set<string>();
    const served = learned.served();
    for (const { card, numWorkers, numWaiting } of served)
      if (numWorkers === 0 && numWaiting > 0) wanted.add(card.name);
    for (const [name, count] of expected.refused) {
      if (count > (this.#refused.get(name) ?? 0) && !served.some(({ card }) => card.name === name))
        wanted.add(name);
      this.#refused.set(name, count);
    }
    for (const name of wanted) if (loading.of(name).loading === 0) tell(name);
  }

  close(): void {
    clearInterval(this.#timer);
  }
}
