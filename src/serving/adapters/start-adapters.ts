import { onlyTold } from '../../../base/error-reporter.js';
import type { AdapterRoom } from '../../../callbacks/worker-messages.js';
import { takesNoAdapters } from '../../../engine/options/option-effects.js';
import { localAdapter } from '../../hub/local-model.js';
import type { ModelOptions } from '../model-options.js';
import { AdapterError } from './adapter-error.js';
import { type AdapterBase, ModelAdapters } from './model-adapters.js';

/** A model that was just loaded. */
export interface LoadedBase extends Omit<AdapterBase, 'room'> {
  /** null: its executor takes no adapters. */
  room: AdapterRoom | null;
  executor: string;
}

/**
 * The adapters of a model that was just loaded, with those of its options, paths by name.
 * @throws AdapterError where its executor takes none; HubError, and as ModelAdapters.load; nothing is then left open
 */
export async function startAdapters(
  given: Readonly<Record<string, string>>,
  { onDownload, signal }: Pick<ModelOptions, 'onDownload' | 'signal'>,
  { executor, room, ...base }: LoadedBase,
): Promise<ModelAdapters> {
  if (room === null) throw new AdapterError(takesNoAdapters(executor), 'none');
  const adapters = new ModelAdapters({ ...base, room });
  const onProgress = onDownload && onlyTold('onDownload', onDownload);
  try {
    for (const [name, path] of Object.entries(given)) {
      const local = await localAdapter(path, { onProgress, signal });
      await adapters.load(name, local, { signal });
    }
    return adapters;
  } catch (error) {
    await adapters.close();
    throw error;
  }
}
