import { type AdapterWeights, adapterOf, type ModuleLayer } from '../../models/adapters/adapter-weights.js';
import { type BaseModules, baseModules, isInLayer } from '../../models/adapters/base-modules.js';
import type { ModuleId } from '../../models/adapters/module-ids.js';
import type { ModelConfig } from '../../models/model-config.js';

/** What an adapter is made of; the functions are asked in the order of its layers, modules, A and B. */
export interface MadeUp {
  /** Modules of each layer. */
  modules(base: BaseModules): Iterable<ModuleId>;
  /** Rank of a module in a layer; 0: it is left as it is. */
  rank(): number;
  /** Next number of A or B. */
  value(): number;
}

/** An adapter of an untrained model. */
export function madeUpAdapter(
  config: ModelConfig,
  { modules, rank: nextRank, value }: MadeUp,
): AdapterWeights {
  const base = baseModules(config);
  const moduleLayers: ModuleLayer[] = [];
  for (let layer = 0; layer < config.numLayers; layer++) {
    for (const module of new Set(modules(base))) {
      const rank = nextRank();
      if (rank === 0 || !isInLayer(config, layer, module)) continue;
      const shape = base.shapes.get(module)!;
      const values = (length: number) => Float32Array.from({ length }, value);
      moduleLayers.push({ layer, module, rank, a: values(rank * shape.in), b: values(shape.out * rank) });
    }
  }
  return adapterOf(moduleLayers, null);
}
