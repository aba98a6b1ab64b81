import { createRequire } from 'node:module';
import { join } from 'node:path';
import { messageOf } from '../../../base/error-text.js';
import { asClause, asSentence } from '../../../base/sentences.js';
import { SkeinError } from '../../../base/skein-error.js';
import { findInstallation, type TensorFlowInstallation } from './installation.js';

/** TensorFlow is missing, cannot be loaded, or cannot do what is asked. The message is a sentence that says what to do. */
export class TensorFlowError extends SkeinError {
  override name = 'TensorFlowError';
  override readonly code = 'SKEIN_TENSORFLOW';
}

type TypedArray = Float32Array | Int32Array | Uint8Array;

/** A tensor, reduced to the members that this executor uses. */
export interface TensorHandle {
  readonly shape: number[];
  dataSync(): TypedArray;
  dispose(): void;
}

/** Values of a tensor; those of strings are their bytes, int64 goes in as pairs of int32. */
export type TensorValues = TypedArray | BigInt64Array | Uint8Array[];

type TypeNames = 'TF_FLOAT' | 'TF_INT32' | 'TF_INT64' | 'TF_UINT8' | 'TF_BOOL' | 'TF_STRING';

/** The package's native part, with TensorFlow's numbers of types. Its tensors have numbers, and live until they are deleted. */
export interface TensorFlowBinding extends Readonly<Record<TypeNames, number>> {
  TF_Version: string;
  getNumOfTensors(): number;
  createTensor(shape: number[], type: number, values: TensorValues): number;
  tensorDataSync(id: number): TensorValues;
  deleteTensor(id: number): void;
  /** @param tags separated by commas */
  loadSavedModel(path: string, tags: string): number;
  /** @param inputNames and outputNames: tensors of the graph, separated by commas */
  runSavedModel(
    id: number,
    inputs: readonly number[],
    inputNames: string,
    outputNames: string,
  ): { id: number; shape: number[]; dtype: number }[];
  deleteSavedModel(id: number): void;
}

/** TensorFlow.js's backend named `tensorflow`. */
export interface TensorFlowBackend {
  isUsingGpuDevice: boolean;
  binding: TensorFlowBinding;
  /** Like tf.node.loadSavedModel without its own reading of the file: returns a number for the loaded graph. */
  loadSavedModelMetaGraph(path: string, tags: string): number;
  runSavedModel(
    id: number,
    inputs: TensorHandle[],
    inputInfos: { name: string }[],
    outputs: string[],
  ): TensorHandle[];
  deleteSavedModel(id: number): void;
}

/** Members that this executor uses of @tensorflow/tfjs-node-gpu and @tensorflow/tfjs-node, which are alike. */
export interface TensorFlow {
  tensor(values: TypedArray, shape: number[], dtype: 'float32' | 'int32' | 'bool'): TensorHandle;
  memory(): { numTensors: number; numDataBuffers: number; numBytes: number };
  backend(): TensorFlowBackend;
}

/** The command that installs what is missing. */
const SETUP_COMMAND = 'skein setup tensorflow';

export const MISSING = `TensorFlow is not installed; run "${SETUP_COMMAND}" (npx ${SETUP_COMMAND} in a project), which links one from pip or downloads it.`;

/**
 * Loads TensorFlow into this thread, after setting the number of threads that it computes with. TensorFlow reads that
 * once: the first caller in a process decides.
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

/** Sets variables for TensorFlow's C++ part, which must reach the process: a worker shares its environment for that. */
function setEnvironment(threads: number | undefined): void {
  if (threads !== undefined) {
    process.env.TF_NUM_INTRAOP_THREADS ??= String(threads);
    // Two ops may run at a time, so that one begins while the other's threads end.
    process.env.TF_NUM_INTEROP_THREADS ??= String(Math.min(2, threads));
  }
  process.env.TF_CPP_MIN_LOG_LEVEL ??= '2';
  // A GPU's memory is taken as needed, not all of it at once.
  process.env.TF_FORCE_GPU_ALLOW_GROWTH ??= 'true';
}

/** Restores functions that Node 23 took out of node:util and the package still calls. */
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
  return `${name} in ${folder} cannot be loaded (${asClause(asSentence(message))}); ${again}.`;
}
