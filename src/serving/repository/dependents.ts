import { InferError } from '../../../callbacks/infer/infer-error.js';

/**
 * Which loaded models need which others: an ensemble its members, a part of a model of texts that model. What
 * clients named is kept apart from what was loaded as a dependency.
 */
export class Dependents {
  /** Of each model that was asked for, whether it could be loaded or not. */
  readonly #needs = new Map<string, readonly string[]>();
  /** Models that clients named, or the start of the server. */
  readonly #named = new Set<string>();

  /** A client named the model: it stays when no other model needs it any more. */
  name(model: string): void {
    this.#named.add(model);
  }

  /** The model is being loaded, and needs these. */
  note(model: string, needs: readonly string[]): void {
    if (needs.length === 0) this.#needs.delete(model);
    else this.#needs.set(model, needs);
  }

  /** The model is unloaded because a client wants it: it does not come back with what it needs. */
  forget(model: string): void {
    this.#needs.delete(model);
    this.#named.delete(model);
  }

  /** Models that need this one. */
  of(model: string): string[] {
    return [...this.#needs].flatMap(([dependent, needs]) => (needs.includes(model) ? [dependent] : []));
  }

  /**
   * The models, and all that was loaded for them alone and that no other model needs. Source: Triton's
   * unload_dependents.
   */
  withTheirs(models: readonly string[]): string[] {
    const leaving = new Set(models);
    for (const model of leaving) {
      for (const needed of this.#needs.get(model) ?? []) {
        const isNeeded = this.of(needed).some((dependent) => !leaving.has(dependent));
        if (!isNeeded && !this.#named.has(needed)) leaving.add(needed);
      }
    }
    return [...leaving];
  }
}

/**
 * Looks whether a model needs itself by way of others. @param needsOf what each model needs
 * @throws InferError that names the last of them, in Triton's words
 */
export function checkCircle(model: string, needsOf: (model: string) => readonly string[]): void {
  const seen = new Set([model]);
  const visit = (one: string): void => {
    for (const needed of needsOf(one)) {
      if (needed === model) {
        const circle = `${model} -> ... -> ${one} -> ${model}`;
        throw new InferError(`circular dependency between ensembles: ${circle}`, 'invalid');
      }
      if (seen.has(needed)) continue;
      seen.add(needed);
      visit(needed);
    }
  };
  visit(model);
}

/** Models that need others in the longest chain of them from this one on, itself among them. */
export function chainLength(model: string, needsOf: (model: string) => readonly string[]): number {
  const known = new Map<string, number>();
  const lengthOf = (one: string): number => {
    const length = known.get(one);
    if (length !== undefined) return length;
    known.set(one, 0); // in a circle, which is refused when a model of it is loaded
    const needs = needsOf(one);
    const found = needs.length === 0 ? 0 : 1 + Math.max(...needs.map(lengthOf));
    known.set(one, found);
    return found;
  };
  return lengthOf(model);
}
