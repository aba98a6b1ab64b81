import { once } from 'node:events';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { messageOf } from '../../../base/error-text.js';
import type { Backend } from '../backend.js';
import { BackendError } from '../backend-error.js';
import { type OnnxValues, toldByOnnx } from './describe-onnx.js';
import { onnxProblem } from './onnx-runtime.js';

const DEFAULT_FILENAME = 'model.onnx';

/** ONNX files by ONNX Runtime, an optional package. */
export const onnxBackend: Backend = {
  name: 'onnxruntime',
  platforms: ['onnxruntime_onnx'],
  runsSequences: true,
  defaultFilename: DEFAULT_FILENAME,
  problem: async () => onnxProblem(),
  describe: async ({ versionDirectory }, config) => {
    const path = join(versionDirectory, config.default_model_filename || DEFAULT_FILENAME);
    return toldByOnnx(await valuesOf(path), config.max_batch_size);
  },
  entry: new URL('./onnx-instance.js', import.meta.url),
};

/** @throws BackendError where the file cannot be opened */
async function valuesOf(path: string): Promise<OnnxValues> {
  const worker = new Worker(new URL('./describe-worker.js', import.meta.url), { workerData: path });
  try {
    const [values] = (await once(worker, 'message')) as [OnnxValues];
    return values;
  } catch (error) {
    throw new BackendError(messageOf(error), { cause: error });
  } finally {
    void worker.terminate();
  }
}
