import { followModels, type ModelDirectory } from '../serving/model-directory.js';
import type { ServedModel } from '../serving/served-model.js';
import type { ServerLog } from './server-log.js';

/** Logs when an engine runs again after it died, and when it now uses a slower executor than before. */
export function logEngines(models: ModelDirectory, log: ServerLog): void {
  const fallbacks = new Map<ServedModel, string | null>();
  const fallbackOf = ({ state }: ServedModel) => state.executor?.fallback ?? null;
  followModels(models, ({ kind, model }) => {
    if (kind === 'added') fallbacks.set(model, fallbackOf(model));
    if (kind === 'removed') fallbacks.delete(model);
    if (kind !== 'state' || model.state.status !== 'ready') return;
    const fallback = fallbackOf(model);
    if (fallback !== null && fallback !== fallbacks.get(model)) log.error({ model: model.id }, fallback);
    fallbacks.set(model, fallback);
    log.info({ model: model.id }, 'the engine runs again');
  });
}
