import { Worker } from 'node:worker_threads';
import { requireThreadRoom } from '../../../base/address-space.js';
import { type ErrorRecord, errorOf } from '../../../base/error-record.js';
import type { FoundEngines } from '../find-engines.js';
import type { ModelOptions } from '../model-options.js';
import type { ModelFilesTask } from './model-files-worker.js';

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
  requireThreadRoom();
  const workerData: ModelFilesTask = { engines: options };
  const thread = new Worker(new URL('./model-files-worker.js', import.meta.url), { workerData });
  const onAbort = () => thread.postMessage(ABORT);
  signal?.addEventListener('abort', onAbort, { once: true });
  try {
    const reply = await new Promise<EnginesReply>((resolve, reject) => {
      thread.once('message', resolve);
      thread.once('error', reject);
      thread.once('exit', (code) => reject(new Error(`The thread that builds engines ended: ${code}.`)));
    });
    if ('found' in reply) return reply.found;
    throw errorOf(reply.failure);
  } catch (error) {
    signal?.throwIfAborted();
    throw error;
  } finally {
    signal?.removeEventListener('abort', onAbort);
  }
}
