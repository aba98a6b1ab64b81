import { type ErrorRecord, errorOf } from '../../../base/error-record.js';
import type { FoundEngines } from '../find-engines.js';
import type { ModelOptions } from '../model-options.js';
import { beginModelFiles } from './model-files-thread.js';

/** The thread's only message. */
export type EnginesReply = { found: FoundEngines } | { failure: ErrorRecord };

/** Message to the thread that ends its work. */
export const ABORT = 'abort';

/** Options of a model without its listeners, which cannot go to another thread. */
export type SilentOptions = Omit<
  ModelOptions,
  'onDownload' | 'onProgress' | 'onDamaged' | 'onMissingRanks' | 'cacheListener'
>;

/**
 * Finds the engines of a model in a thread of its own, where they are built if they are missing: the files of a model, and the
 * tables of its tokenizer, would hold this thread for a tenth of a second to seconds. What a build that is aborted has written is
 * removed by the thread.
 *
 * @throws as findEngines, in the thread's words; the signal's reason
 */
export async function findEnginesAside({ signal, ...options }: SilentOptions): Promise<FoundEngines> {
  signal?.throwIfAborted();
  const { thread, reply } = beginModelFiles<EnginesReply>(
    { engines: options },
    (code) => `The thread that builds engines ended: ${code}.`,
  );
  const onAbort = () => thread.postMessage(ABORT);
  signal?.addEventListener('abort', onAbort, { once: true });
  try {
    const engines = await reply;
    if ('found' in engines) return engines.found;
    throw errorOf(engines.failure);
  } catch (error) {
    signal?.throwIfAborted();
    throw error;
  } finally {
    signal?.removeEventListener('abort', onAbort);
  }
}
