import { onlyTold } from '../../../base/error-reporter.js';
import { localAdapter } from '../../hub/local-model.js';
import type { ModelOptions } from '../load-model.js';
import { type AdapterBase, ModelAdapters } from './model-adapters.js';

/**
 * The adapters of a model that was just loaded, with those of its options, paths by name.
 * @throws HubError, and as ModelAdapters.load; nothing is then left open
 */
export async function startAdapters(
  given: Readonly<Record<string, string>>,
  { onDownload, signal }: Pick<ModelOptions, 'onDownload' | 'signal'>,
  base: AdapterBase,
): Promise<ModelAdapters> {
  const adapters = new ModelAdapters(base);
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
