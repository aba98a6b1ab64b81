import { type ErrorRecord, errorOf } from '../../../base/error-record.js';
import { beginModelFiles } from './model-files-thread.js';
import type { ModelMeasure } from './model-measure.js';

/** The thread's only message. */
export type MeasureReply = { measure: ModelMeasure } | { failure: ErrorRecord };

/** Milliseconds after which the reader of a model is ended: its files may be hostile. */
const MAX_MS = 60_000;

/** Measures a model in a thread of its own, which its headers would hold for a tenth of a second to seconds. @throws as measureModel */
export async function measureAside(path: string): Promise<ModelMeasure> {
  const tooLong = () => 'Its headers could not be read in time.';
  const { thread, reply } = beginModelFiles<MeasureReply>({ measure: path }, tooLong);
  const timer = setTimeout(() => void thread.terminate(), MAX_MS);
  try {
    const measured = await reply;
    if ('measure' in measured) return measured.measure;
    throw errorOf(measured.failure);
  } finally {
    clearTimeout(timer);
  }
}
