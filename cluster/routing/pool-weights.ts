/** Most engines that are named: a gateway knows as many pools. */
const MAX_ENGINES = 512;
export const MAX_WEIGHT = 1_000_000;
/** Name of an engine: see cardFingerprint. */
export const ENGINE_NAME = /^[\w-]{1,64}$/;

/** Why requests cannot be shared by these weights, as the end of a sentence; null: they can. None of them: wherever there is room. */
export function faultOfWeights(weights: ReadonlyMap<string, number>): string | null {
  if (weights.size > MAX_ENGINES)
    return `names ${weights.size} engines; there may be ${MAX_ENGINES} at most.`;
  if (weights.size === 0 || [...weights.values()].some((weight) => weight > 0)) return null;
  return 'has no weight above 0, so that no engine would get a new request: name the engine that is to get them, as in fp_a=1.';
}

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

  /** Those that are named. */
  get named(): ReadonlyMap<string, number> {
    return this.#weights;
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
