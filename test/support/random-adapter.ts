import { type AdapterWeights, adapterOf, type ModuleLayer } from '../../models/adapters/adapter-weights.js';
import { baseModules } from '../../models/adapters/base-modules.js';
import type { ModuleId } from '../../models/adapters/module-ids.js';
import type { ModelConfig } from '../../models/model-config.js';
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
  const { names, shapes } = baseModules(config);
  const random = new Random(seed);
  const moduleLayers: ModuleLayer[] = [];
  for (let layer = 0; layer < config.numLayers; layer++) {
    for (const module of new Set(modules ?? names.values())) {
      if (random.uniform() < unchanged) continue;
      const shape = shapes.get(module)!;
      const rank = 1 + random.below(maxRank);
      const values = (length: number) => Float32Array.from({ length }, () => scale * random.normal());
      moduleLayers.push({ layer, module, rank, a: values(rank * shape.in), b: values(shape.out * rank) });
    }
  }
  return adapterOf(moduleLayers, null);
}
