/**
 * Weights by which new requests are shared among the engines of a model, by their fingerprints. They may change while a gateway runs.
 * Those that are not named have none.
 */
export class PoolWeights {
  #weights: ReadonlyMap<string, number>;
  /** How often they have changed. */
  changes = 0;

  constructor(weights: ReadonlyMap<string, number> = new Map()) {
    this.#weights = weights;
  }

  get isEmpty(): boolean {
    return this.#weights.size === 0;
  }

  has(engine: string): boolean {
    return this.#weights.has(engine);
  }

  of(engine: string): number {
    return this.#weights.get(engine) ?? 0;
  }

  replace(weights: ReadonlyMap<string, number>): void {
    this.#weights = weights;
    this.changes += 1;
  }
}

/**
 * Chooses among engines in the ratio of their weights, without chance: each choice gives all that may be chosen credit for their weight, and takes
 * that of all of them from the one with the most. With the same engines each time, after any number of choices each has had its share,
 * but for fewer choices than there are engines.
 *
 *   weights a 3, b 1, credits before each choice     a 3 b 1 -> a     a 2 b 2 -> a     a 1 b 3 -> b     a 4 b 0 -> a
 */
export class WeightedTurns {
  readonly #credits = new Map<string, number>();

  /** @param weights above 0, of those that may be chosen; null: there are none */
  choose(weights: ReadonlyMap<string, number>): string | null {
    let best: string | null = null;
    let most = Number.NEGATIVE_INFINITY;
    let sum = 0;
    for (const [name, weight] of weights) {
      const credit = (this.#credits.get(name) ?? 0) + weight;
      this.#credits.set(name, credit);
      sum += weight;
      if (credit > most) {
        most = credit;
        best = name;
      }
    }
    if (best !== null) this.#credits.set(best, most - sum);
    return best;
  }

  /** Other weights, or other engines: what was owed is forgotten. */
  reset(): void {
    this.#credits.clear();
  }
}
