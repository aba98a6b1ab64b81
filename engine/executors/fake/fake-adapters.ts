import type { AdapterWeights } from '../../../models/adapters/adapter-weights.js';
import type { ModelConfig } from '../../../models/model-config.js';
import type { PackedBatch } from '../../packed-call/packed-batch.js';
import type { AdapterSlots } from '../executor.js';
import { mix } from './fake-rows.js';

/** The model that adapters of the fake executor claim to change. */
export const FAKE_MODEL: ModelConfig = {
  architecture: 'llama',
  vocabSize: 100,
  hiddenSize: 4,
  intermediateSize: 8,
  numLayers: 2,
  numHeads: 1,
  numKvHeads: 1,
  headDim: 4,
  rmsNormEpsilon: 1e-5,
  activation: 'silu',
  attentionBias: false,
  mlpBias: false,
  tieWordEmbeddings: true,
  maxPositions: 2 ** 20,
  slidingWindow: null,
  rope: { theta: 10_000, rotaryDim: 4, scaling: { type: 'none' } },
  bosTokenId: null,
  eosTokenIds: [],
  padTokenId: null,
};

/**
 * Slots that hold a hash of the adapter. Each token that the cache gets from a sequence with an adapter depends on it, and so do
 * all tokens drawn after it.
 */
export class FakeAdapters implements AdapterSlots {
  readonly maxSlots: number;
  readonly maxRank: number;
  /** Number of calls of `put` so far. */
  numPuts = 0;
  readonly #refuse: () => void;
  /** Hash of what each slot holds; null: nothing. */
  readonly #hashes: (number | null)[];

  /** @param refuse throws where slots may not change now */
  constructor(maxSlots: number, maxRank: number, refuse: () => void) {
    this.maxSlots = maxSlots;
    this.maxRank = maxRank;
    this.#refuse = refuse;
    this.#hashes = new Array(maxSlots).fill(null);
  }

  put(slot: number, weights: AdapterWeights): void {
    this.#refuse();
    this.#checkSlot(slot);
    if (weights.maxRank > this.maxRank) {
      throw new Error(`an adapter of rank ${weights.maxRank} was put; slots take ${this.maxRank}`);
    }
    this.numPuts += 1;
    this.#hashes[slot] = hashOf(weights);
  }

  clear(slot: number): void {
    this.#refuse();
    this.#checkSlot(slot);
    this.#hashes[slot] = null;
  }

  /** Number of slots that hold an adapter. */
  get numFilled(): number {
    return this.#hashes.filter((hash) => hash !== null).length;
  }

  /** Hash of a sequence's adapter; null: it has none. */
  hashFor({ adapterSlots }: PackedBatch, sequence: number): number | null {
    const slot = adapterSlots?.[sequence] ?? -1;
    if (slot === -1) return null;
    this.#checkSlot(slot);
    const hash = this.#hashes[slot];
    if (hash == null) throw new Error(`sequence ${sequence} has the adapter slot ${slot}, which is empty`);
    return hash;
  }

  #checkSlot(slot: number): void {
    if (slot < 0 || slot >= this.maxSlots) {
      throw new Error(`${slot} is no adapter slot; there are ${this.maxSlots}`);
    }
  }
}

function hashOf({ moduleLayers }: AdapterWeights): number {
  let hash = 0;
  for (const { layer, module, rank, a, b } of moduleLayers) {
    hash = mix(mix(mix(hash, layer), module), rank);
    for (const values of [a, b]) for (const value of values) hash = mix(hash, Math.round(value * 2 ** 16));
  }
  return hash;
}
