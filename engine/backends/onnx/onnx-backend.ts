import type { Backend } from '../backend.js';
import { modelFile } from '../model-file.js';
import { toldByOnnx } from './describe-onnx.js';
import { onnxProblem } from './onnx-runtime.js';
import { readValues } from './read-values.js';

const DEFAULT_FILENAME = 'model.onnx';

/** ONNX files by ONNX Runtime, an optional package. */
export const onnxBackend: Backend = {
  name: 'onnxruntime',
  platforms: ['onnxruntime_onnx'],
  runsSequences: true,
  defaultFilename: DEFAULT_FILENAME,
  // Some operations divide by a size of their input or by its numbers, and a 0 among these ends the process.
  instanceKind: 'process',
  problem: async () => onnxProblem(),
  describe: async ({ versionDirectory }, config) => {
    const path = modelFile(versionDirectory, [config.default_model_filename || DEFAULT_FILENAME]);
    return toldByOnnx(await readValues(path), config);
  },
  entry: new URL('./onnx-instance.js', import.meta.url),
};
