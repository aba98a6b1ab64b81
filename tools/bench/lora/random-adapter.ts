import type { AdapterWeights } from '../../../models/adapters/adapter-weights.js';
import type { ModelConfig } from '../../../models/model-config.js';
import { roundToBf16 } from '../../support/bf16.js';
import { madeUpAdapter } from '../../support/made-up-adapter.js';
import { Random } from '../../support/random.js';

/** An adapter that is made up: its rank, Hugging Face's names of its modules, and what its numbers were saved in. */
export interface AdapterKind {
  name: string;
  rank: number;
  /** Ends of the modules' names, `q_proj`; null: all. */
  modules: readonly string[] | null;
  saved: 'f32' | 'bf16';
}

/** Random weights on the modules of all layers, small enough that answers stay finite. */
export function randomAdapter(
  config: ModelConfig,
  { rank, modules, saved }: AdapterKind,
  seed: number,
): AdapterWeights {
  const random = new Random(seed);
  const isChanged = (name: string) => modules === null || modules.some((end) => name.endsWith(end));
  return madeUpAdapter(config, {
    modules: ({ names }) => Array.from(names).flatMap(([name, module]) => (isChanged(name) ? [module] : [])),
    rank: () => rank,
    value: () => {
      const float = 0.04 * (random.uniform() - 0.5);
      return saved === 'bf16' ? roundToBf16(float) : float;
    },
  });
}

/** Bytes of all A and B as they were saved. */
export function adapterBytes({ moduleLayers }: AdapterWeights, { saved }: AdapterKind): number {
  const values = moduleLayers.reduce((sum, { a, b }) => sum + a.length + b.length, 0);
  return values * (saved === 'bf16' ? 2 : 4);
}
