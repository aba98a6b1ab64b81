import { join } from 'node:path';
import type { ModelConfig } from '../../../models/repository/model-config.js';
import { findInstallation } from '../../executors/tensorflow/installation.js';
import { type Backend, BackendError, type ModelFiles } from '../backend.js';
import { toldBySignature } from './describe-saved-model.js';
import { readSavedModel } from './saved-model-file.js';
import { chooseSignature } from './signature.js';

const DEFAULT_FILENAME = 'model.savedmodel';

/** What is said to models of the format that TensorFlow had before. */
export const GRAPHDEF_REFUSED =
  'a GraphDef (tensorflow_graphdef, model.graphdef) has no signatures and is not run here; save the model as a SavedModel, in the folder 1/model.savedmodel (platform tensorflow_savedmodel)';

/** SavedModels by TensorFlow, as `skein setup tensorflow` installs it. */
export const tensorflowBackend: Backend = {
  name: 'tensorflow',
  platforms: ['tensorflow_savedmodel'],
  runsSequences: true,
  defaultFilename: DEFAULT_FILENAME,
  instanceKind: 'process',
  onlyInProcess: 'TensorFlow computes in one thread of a process',
  problem: async () => {
    if (findInstallation() !== null) return null;
    return (await import('../../executors/tensorflow/load-tensorflow.js')).MISSING;
  },
  describe: async (files, config) => {
    if (config.platform === 'tensorflow_graphdef') throw new BackendError(GRAPHDEF_REFUSED);
    checkParameters(config.parameters);
    const folder = savedModelFolder(files, config.default_model_filename);
    const { signature } = chooseSignature(folder, await readSavedModel(folder), config.parameters);
    return toldBySignature(signature, config);
  },
  entry: new URL('./tensorflow-instance.js', import.meta.url),
};

/** Parameters of Triton's TensorFlow backend that would mean something here, and do not. @throws BackendError */
function checkParameters(parameters: ModelConfig['parameters'] = {}): void {
  if (parameters.TF_INIT_OPS_FILE !== undefined) {
    throw new BackendError(
      'parameters.TF_INIT_OPS_FILE is of GraphDefs; a SavedModel has the operations that it begins with in itself.',
    );
  }
  if (Number(parameters.MAX_SESSION_SHARE_COUNT?.string_value ?? 1) !== 1) {
    throw new BackendError(
      'parameters.MAX_SESSION_SHARE_COUNT is not 1: each instance is a process with a session of its own.',
    );
  }
}

export function savedModelFolder({ versionDirectory }: ModelFiles, filename: string | undefined): string {
  return join(versionDirectory, filename || DEFAULT_FILENAME);
}
