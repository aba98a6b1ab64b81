import type { ModuleId } from './module-ids.js';

/**
 * The low-rank change of one weight of one layer: y = W x + B (A x).
 *
 *   x [in] --> A [rank x in] --> t [rank] --> B [out x rank] --> added to W x, before bias and activation
 *
 * The scaling (alpha / rank) is already in B.
 */
export interface ModuleLayer {
  /** Number of the layer, from 0. */
  layer: number;
  module: ModuleId;
  rank: number;
  /** A, [rank x in], row-major. */
  a: Float32Array;
  /** B times the scaling, [out x rank], row-major. */
  b: Float32Array;
}

/** A LoRA adapter in float32, checked against the dimensions of its base model. */
export interface AdapterWeights {
  /** Sorted by layer, then by module id; no pair of them twice. */
  moduleLayers: ModuleLayer[];
  /** Greatest rank of a module-layer. */
  maxRank: number;
  /** Modules that the adapter changes in at least one layer, ascending. */
  modules: ModuleId[];
  /**
   * Name or path of the base model that the adapter was trained on, as its author wrote it; null: unknown.
   */
  baseModel: string | null;
}

/** What is accepted of an adapter. */
export interface AdapterLimits {
  /** Greatest rank of a module-layer. */
  maxRank: number;
  /** Most bytes of all A and B together in float32. Absent: DEFAULT_MAX_ADAPTER_BYTES. */
  maxBytes?: number;
}

/** Twice an adapter of rank 64 on all modules of a model of 70 billion weights. */
export const DEFAULT_MAX_ADAPTER_BYTES = 8 * 2 ** 30;

/** Sorts the module-layers and collects the facts about them. */
export function adapterOf(moduleLayers: readonly ModuleLayer[], baseModel: string | null): AdapterWeights {
  const sorted = [...moduleLayers].sort((one, other) => one.layer - other.layer || one.module - other.module);
  const modules = [...new Set(sorted.map(({ module }) => module))].sort((one, other) => one - other);
  const maxRank = sorted.reduce((most, { rank }) => Math.max(most, rank), 0);
  return { moduleLayers: sorted, maxRank, modules, baseModel };
}
