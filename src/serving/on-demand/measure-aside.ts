import { Worker } from 'node:worker_threads';
import { requireThreadRoom } from '../../../base/address-space.js';
import { type ErrorRecord, errorOf } from '../../../base/error-record.js';
import type { ModelFilesTask } from './model-files-worker.js';
import type { ModelMeasure } from './model-measure.js';

/** The thread's only message. */
export type MeasureReply = { measure: ModelMeasure } | { failure: ErrorRecord };

/** Milliseconds after which the reader of a model is ended: its files may be hostile. */
const MAX_MS = 60_000;

/** Measures a model in a thread of its own, which its headers would hold for a tenth of a second to seconds. @throws as measureModel */
export async function measureAside(path: string): Promise<ModelMeasure> {
  requireThreadRoom();
  const workerData: ModelFilesTask = { measure: path };
  const thread = new Worker(new URL('./model-files-worker.js', import.meta.url), { workerData });
  const tooLong = setTimeout(() => void thread.terminate(), MAX_MS);
  try {
    const reply = await new Promise<MeasureReply>((resolve, reject) => {
      thread.once('message', resolve);
      thread.once('error', reject);
      thread.once('exit', () => reject(new Error('Its headers could not be read in time.')));
    });
    if ('measure' in reply) return reply.measure;
    throw errorOf(reply.failure);
  } finally {
    clearTimeout(tooLong);
  }
}
