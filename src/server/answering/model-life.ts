import { withAdapters } from '../../serving/adapters/served-adapters.js';
import type { ModelCatalogue } from '../../serving/catalogue/model-catalogue.js';
import type { ModelDirectory } from '../../serving/model-directory.js';
import type { ModelPulls } from '../../serving/on-demand/model-pulls.js';
import type { ModelStore } from '../../serving/on-demand/model-store.js';
import type { Lease, OnDemandModels } from '../../serving/on-demand/on-demand-models.js';
import { ApiError } from '../web/errors.js';
import { listed, noSuchModel } from './find-model.js';

/** In place of names. */
const EMPTY = 'no model: its folder is empty';

/** Models that are loaded when a request names them, and the folder in which they lie. */
export interface ModelLife {
  store: ModelStore;
  /** Other programs use the folder too: no client deletes models of it. */
  isShared: boolean;
  models: OnDemandModels;
  /** Downloads into the folder. */
  pulls: ModelPulls;
  /** What this machine has and could have; absent: it is not shown. */
  catalogue?: ModelCatalogue;
}

/**
 * The model that a request names, loaded for it if it lies in the folder; null: the request names none, and
 * the route finds by itself what is served. @throws ModelLoadError; ApiError where there is no such model,
 * which lists those of the folder too
 */
export async function borrowNamed(
  life: ModelLife,
  models: ModelDirectory,
  name: unknown,
  signal: AbortSignal,
): Promise<Lease | null> {
  if (typeof name !== 'string') {
    if (models.list().length > 0) return null;
    const message = `'model' is missing, and no model is loaded yet: name one. This server serves ${listed(await names(life, models)) || EMPTY}.`;
    throw new ApiError(400, message, { param: 'model', code: 'missing_required_parameter' });
  }
  const lease = await life.models.borrow(name, { signal });
  if (lease !== null) return lease;
  // Ollama's lists have every name with its tag.
  const plain = name.replace(/:latest$/, '');
  const untagged = plain === name ? null : await life.models.borrow(plain, { signal });
  if (untagged !== null) return untagged;
  throw noSuchModel(name, await names(life, models), EMPTY);
}

/** What is served and what lies in the folder. */
async function names({ store }: ModelLife, models: ModelDirectory): Promise<string[]> {
  const stored = (await store.list()).map(({ name }) => name);
  return [...new Set([...withAdapters(models.list()).map(({ id }) => id), ...stored])];
}
