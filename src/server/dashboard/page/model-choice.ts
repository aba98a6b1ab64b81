import type { ChatModel } from './models.js';

/** What the page does once it knows which models are served. */
export interface NextModel {
  /** The model that the page is of; null: none. */
  model: ChatModel | null;
  /** Name of the model that the reader wants and that is not served; null: it is, or none is wanted. */
  gone: string | null;
}

/**
 * Whose page it is. At first that of any model; once the reader has chosen one, or has asked it something, that of this one alone:
 * where it goes, no other model is asked until the reader says so.
 */
export class ModelChoice {
  #wanted: string | null = null;
  #models: readonly ChatModel[] = [];

  /** Notes that the reader has chosen the model, or has asked it. */
  want(model: string): void {
    this.#wanted = model;
  }

  /** What is known of a model that is served; null: nothing. */
  find(model: string | null): ChatModel | null {
    return this.#models.find(({ id }) => id === model) ?? null;
  }

  /** @param watched the model that the page is of now; null: none */
  among(models: readonly ChatModel[], watched: string | null): NextModel {
    const wanted = this.#wanted;
    this.#models = models;
    const found = models.find(({ id }) => id === (wanted ?? watched));
    if (found !== undefined) return { model: found, gone: null };
    return wanted === null ? { model: models[0] ?? null, gone: null } : { model: null, gone: wanted };
  }
}
