import { followModels, type ModelDirectory } from '../../serving/model-directory.js';
import { missingText } from '../../serving/model-state.js';
import type { ServedModel } from '../../serving/served-model.js';
import type { ServerLog } from '../web/server-log.js';

/**
 * Logs which ranks a model waits for, when an engine runs again after it died or cannot be started again, and when it now uses a slower
 * executor than before.
 */
export function logEngines(models: ModelDirectory, log: ServerLog): void {
  const fallbacks = new Map<ServedModel, string | null>();
  /** The last report about the missing ranks. */
  const waiting = new Map<ServedModel, string>();
  const logMissing = (model: ServedModel) => {
    const { missing } = model.state;
    const text = missing === null ? '' : missingText(missing);
    if (text !== '' && text !== waiting.get(model)) log.warn({ model: model.id }, text);
    waiting.set(model, text);
  };
  const fallbackOf = ({ state }: ServedModel) => state.executor?.fallback ?? null;
  followModels(models, ({ kind, model }) => {
    if (kind === 'added') fallbacks.set(model, fallbackOf(model));
    if (kind === 'removed') fallbacks.delete(model);
    if (kind === 'removed') waiting.delete(model);
    if (kind === 'state') logMissing(model);
    if (kind === 'state' && model.state.status === 'failed')
      log.error({ model: model.id, err: model.state.failure }, 'the engine cannot be started again');
    if (kind !== 'state' || model.state.status !== 'ready') return;
    const fallback = fallbackOf(model);
    if (fallback !== null && fallback !== fallbacks.get(model)) log.error({ model: model.id }, fallback);
    fallbacks.set(model, fallback);
    log.info({ model: model.id, resumed: model.state.resumed }, 'the engine runs again');
  });
}
