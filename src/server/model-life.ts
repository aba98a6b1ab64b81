import type { ModelPulls } from '../serving/on-demand/model-pulls.js';
import type { ModelStore } from '../serving/on-demand/model-store.js';
import type { Lease, OnDemandModels } from '../serving/on-demand/on-demand-models.js';

/** Models that are loaded when a request names them, and the folder in which they lie. */
export interface ModelLife {
  store: ModelStore;
  models: OnDemandModels;
  /** Downloads into the folder. */
  pulls: ModelPulls;
}

/**
 * The model that a request names, loaded for it if it lies in the folder; null: it does not, or there is no folder, and the route finds
 * what is served by itself. @throws ModelLoadError
 */
export async function borrowNamed(
  life: ModelLife | null,
  name: unknown,
  signal: AbortSignal,
): Promise<Lease | null> {
  if (life === null || typeof name !== 'string') return null;
  return life.models.borrow(name, { signal });
}
