import { createRequire } from 'node:module';
import { join } from 'node:path';
import { messageOf } from '../../../base/error-text.js';
import { asSentence } from '../../../base/sentences.js';
import { findInstallation, type TensorFlowInstallation } from './installation.js';
import { TensorFlowError } from './tensorflow-error.js';

type TypedArray = Float32Array | Int32Array | Uint8Array;

/** A tensor, as far as this executor uses it. */
export interface TensorHandle {
  readonly shape: number[];
  dataSync(): TypedArray;
  dispose(): void;
}

/** TensorFlow.js's backend of the name `tensorflow`. */
export interface TensorFlowBackend {
  isUsingGpuDevice: boolean;
  binding: { TF_Version: string; getNumOfTensors(): number };
  /** What tf.node.loadSavedModel does, less its own reading of the file: gives a number for the loaded graph. */
  loadSavedModelMetaGraph(path: string, tags: string): number;
  runSavedModel(
    id: number,
    inputs: TensorHandle[],
    inputInfos: { name: string }[],
    outputs: string[],
  ): TensorHandle[];
  deleteSavedModel(id: number): void;
}

/** What this executor uses of @tensorflow/tfjs-node-gpu and @tensorflow/tfjs-node, which are alike. */
export interface TensorFlow {
  tensor(values: TypedArray, shape: number[], dtype: 'float32' | 'int32' | 'bool'): TensorHandle;
  memory(): { numTensors: number; numDataBuffers: number; numBytes: number };
  backend(): TensorFlowBackend;
}

/** The command that makes what is missing. */
export const SETUP_COMMAND = 'skein setup tensorflow';

export const MISSING = `TensorFlow is not installed; run "${SETUP_COMMAND}" (npx ${SETUP_COMMAND} in a project), which links one from pip or downloads it.`;

/**
 * Loads TensorFlow into this thread. Before that the threads that it computes with are said to it, which it reads once:
 * the first of a process decides.
 *
 * @param threads absent: one for each processor.
 * @throws TensorFlowError
 */
export function loadTensorFlow(threads?: number, installation = findInstallation()): TensorFlow {
  if (installation === null) {
    throw new TensorFlowError(MISSING);
  }
  setEnvironment(threads);
  const require = createRequire(join(installation.folder, 'package.json'));
  restoreRemovedFunctions(require('node:util'));
  try {
    const tensorflow = require(installation.folder) as TensorFlow;
    tensorflow.backend();
    return tensorflow;
  } catch (error) {
    throw new TensorFlowError(loadProblem(installation, error));
  }
}

/** Read by TensorFlow's C++ part, so that they must reach the process: a worker shares its environment for that. */
function setEnvironment(threads: number | undefined): void {
  if (threads !== undefined) {
    process.env.TF_NUM_INTRAOP_THREADS ??= String(threads);
    // Two ops at a time: one is begun while the other's threads end.
    process.env.TF_NUM_INTEROP_THREADS ??= String(Math.min(2, threads));
  }
  process.env.TF_CPP_MIN_LOG_LEVEL ??= '2';
  // A GPU's memory is taken as it is needed, not all of it at once.
  process.env.TF_FORCE_GPU_ALLOW_GROWTH ??= 'true';
}

/** The package calls functions that Node 23 took out of node:util. */
function restoreRemovedFunctions(util: Record<string, unknown>): void {
  util.isNullOrUndefined ??= (value: unknown) => value === null || value === undefined;
  util.isArray ??= Array.isArray;
}

function loadProblem({ package: name, folder, from }: TensorFlowInstallation, error: unknown): string {
  const message = messageOf(error).split('\n')[0]!;
  const again =
    from === 'setup'
      ? `run "${SETUP_COMMAND} --force" to make it again`
      : `install it again, or remove it and run "${SETUP_COMMAND}"`;
  const missing = /^(\S+): cannot open shared object file/.exec(message)?.[1];
  if (missing !== undefined && /cuda|cudnn|cublas|nvidia|nccl/i.test(missing)) {
    return `${name} in ${folder} cannot be loaded: the CUDA library ${missing} is missing or of another version; install the CUDA version that this TensorFlow was built for, or ${again} with a TensorFlow for this machine (--from).`;
  }
  if (missing !== undefined) {
    return `${name} in ${folder} cannot be loaded: ${missing} is not where it was when it was linked; ${again}.`;
  }
  return `${name} in ${folder} cannot be loaded (${asSentence(message).replace(/\.$/, '')}); ${again}.`;
}
