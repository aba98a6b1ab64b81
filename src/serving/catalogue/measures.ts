import { reasonFor } from '../model-load-error.js';
import type { ModelMeasure } from '../on-demand/model-measure.js';
import type { StoredModel } from '../on-demand/model-store.js';

/** What was measured, or why nothing could be. */
export type Measured = { measure: ModelMeasure } | { problem: string };

/** Models whose measures are kept. */
const KEPT = 256;

/** Measures of stored models, each made once while its files stay the same, one after the other. */
export class Measures {
  readonly #measure: (path: string) => Promise<ModelMeasure>;
  readonly #known = new Map<string, Measured>();
  readonly #waiting = new Map<string, StoredModel>();
  #isClosed = false;
  #isBusy = false;

  /** @param measure measures the model of a path, in another thread */
  constructor(measure: (path: string) => Promise<ModelMeasure>) {
    this.#measure = measure;
  }

  /** What is known of a model; null: it is being measured. */
  of(model: StoredModel): Measured | null {
    const key = keyOf(model);
    const known = this.#known.get(key);
    if (known !== undefined) {
      this.#known.delete(key);
      this.#known.set(key, known);
      return known;
    }
    if (this.#waiting.size < KEPT) this.#waiting.set(key, model);
    if (!this.#isBusy) void this.#work();
    return null;
  }

  /** Measures no more. */
  close(): void {
    this.#isClosed = true;
  }

  async #work(): Promise<void> {
    this.#isBusy = true;
    for (const [key, model] of this.#waiting) {
      if (this.#isClosed) break;
      const { path } = model;
      const measured: Measured = await this.#measure(path).then(
        (measure) => ({ measure }),
        (error: unknown) => ({ problem: reasonFor(error, model) }),
      );
      this.#waiting.delete(key);
      this.#known.set(key, measured);
      if (this.#known.size > KEPT) this.#known.delete(this.#known.keys().next().value!);
    }
    this.#isBusy = false;
  }
}

const keyOf = ({ path, digest }: StoredModel) => `${path}\0${digest}`;
