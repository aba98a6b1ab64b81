import type { AdapterWeights } from '../../models/adapters/adapter-weights.js';
import type { ModuleId } from '../../models/adapters/module-ids.js';
import type { ModelConfig } from '../../models/model-config.js';
import { madeUpAdapter } from '../../tools/support/made-up-adapter.js';
import { Random } from '../../tools/support/random.js';

export interface RandomAdapterOptions {
  /** Each module of each layer has a rank of its own, from 1. */
  maxRank: number;
  /** Standard deviation of all weights; default 0.15. */
  scale?: number;
  /** Share of the modules that are left as they are; default 0.3. */
  unchanged?: number;
  /** Default: those that the model's checkpoint holds. */
  modules?: Iterable<ModuleId>;
}

/** Random weights on modules of a model. */
export function randomAdapter(
  config: ModelConfig,
  seed: number,
  { maxRank, scale = 0.15, unchanged = 0.3, modules }: RandomAdapterOptions,
): AdapterWeights {
  const random = new Random(seed);
  return madeUpAdapter(config, {
    modules: ({ names }) => modules ?? names.values(),
    rank: () => (random.uniform() < unchanged ? 0 : 1 + random.below(maxRank)),
    value: () => scale * random.normal(),
  });
}
