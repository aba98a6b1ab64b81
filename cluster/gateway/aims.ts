import type { RosterPool } from '../nats/roster-pool.js';
import type { EngineShare } from '../routing/model-routing.js';
import { type PoolWeights, WeightedTurns } from '../routing/pool-weights.js';
import { cardFingerprint, isNameOfEngine } from './card-fingerprint.js';
import type { QueuedRequest } from './queued-request.js';

/** Fingerprint of the engines of a pool. */
export function engineOf({ model }: RosterPool): string {
  return cardFingerprint(model)!;
}

/**
 * Which engine of a model a request is for: the one that it names, or the one whose turn it is by the weights; null: any.
 *
 *   pinned                    -> that engine alone
 *   weights name one of them  -> by WeightedTurns, among those that have workers and a weight
 *   else                      -> any
 */
export class Aims {
  readonly #weights: PoolWeights;
  readonly #turns = new WeightedTurns();
  readonly #counts = new Map<string, number>();
  /** A weight was named for an engine that the model has had since the weights were changed. */
  #isNamed = false;
  #changes = 0;

  constructor(weights: PoolWeights) {
    this.#weights = weights;
  }

  /** How often the weights have changed. */
  get changes(): number {
    return this.#weights.changes;
  }

  /** Requests of the model are shared by weights. @param pools all of the model */
  isWeighted(pools: readonly RosterPool[]): boolean {
    if (this.#changes !== this.#weights.changes) {
      this.#changes = this.#weights.changes;
      this.#isNamed = false;
      this.#turns.reset();
    }
    this.#isNamed ||= !this.#weights.isEmpty && pools.some((pool) => this.#weights.has(engineOf(pool)));
    return this.#isNamed;
  }

  /** Pools that may begin the request, whatever room they have. */
  allowed(request: QueuedRequest, pools: readonly RosterPool[]): readonly RosterPool[] {
    const { pin } = request;
    if (pin !== null) {
      const { adapterName } = request.request;
      return pools.filter(({ model }) => isNameOfEngine(pin, model, adapterName));
    }
    return this.isWeighted(pools) ? pools.filter((pool) => this.#weights.of(engineOf(pool)) > 0) : pools;
  }

  /** The engine whose turn it is; null: any, or none of them is there. @param able pools that are allowed, and can answer the request */
  next(able: readonly RosterPool[]): string | null {
    const weights = new Map<string, number>();
    for (const pool of able)
      if (pool.takers.size > 0) weights.set(engineOf(pool), this.#weights.of(engineOf(pool)));
    return this.#turns.choose(weights);
  }

  /** A new request goes to the pool. */
  note(pool: RosterPool): void {
    const engine = engineOf(pool);
    this.#counts.set(engine, (this.#counts.get(engine) ?? 0) + 1);
  }

  shares(pools: readonly RosterPool[]): ReadonlyMap<string, EngineShare> {
    const isWeighted = this.isWeighted(pools);
    const engines = new Set([...this.#counts.keys(), ...pools.map(engineOf)]);
    return new Map(
      [...engines].map((engine) => [
        engine,
        { requests: this.#counts.get(engine) ?? 0, weight: isWeighted ? this.#weights.of(engine) : null },
      ]),
    );
  }
}
