import { createRequire } from 'node:module';
import { join } from 'node:path';
import { messageOf } from '../../../base/error-text.js';
import { BackendError } from '../backend.js';
import { findOnnxRuntime, ONNX_PACKAGE } from './installation.js';

/** Element data of a tensor, as ONNX Runtime has it: int64 and uint64 as big integers, texts as strings, float16 as bits. */
export type OnnxData =
  | Float32Array
  | Float64Array
  | Int8Array
  | Uint8Array
  | Int16Array
  | Uint16Array
  | Int32Array
  | Uint32Array
  | BigInt64Array
  | BigUint64Array
  | string[];

export interface OnnxTensor {
  readonly type: string;
  readonly dims: readonly number[];
  readonly data: OnnxData;
}

/** What the runtime reports of an input or an output of a model. */
export interface OnnxMetadata {
  readonly name: string;
  readonly isTensor: boolean;
  /** Of a tensor's elements. */
  readonly type?: string;
  /** Of a tensor; a dimension without a size is a text, its name. Empty also where the number of dimensions is not known. */
  readonly shape?: readonly (number | string)[];
}

export interface OnnxSession {
  readonly inputMetadata: readonly OnnxMetadata[];
  readonly outputMetadata: readonly OnnxMetadata[];
  /** @param fetches names of the outputs to compute */
  run(
    feeds: Readonly<Record<string, OnnxTensor>>,
    fetches: readonly string[],
  ): Promise<Readonly<Record<string, OnnxTensor>>>;
  release(): Promise<void>;
}

/** Options of a session, as far as they are used here. */
export interface OnnxSessionOptions {
  intraOpNumThreads: number;
  interOpNumThreads: number;
  graphOptimizationLevel: 'all';
  logSeverityLevel: typeof ONLY_FATAL;
}

/** ONNX Runtime's number of its highest level: what it throws it would write to stderr too, in colours. */
export const ONLY_FATAL = 4;

/** ONNX Runtime for Node.js, as far as it is used here. Source: the package's onnxruntime-common, lib/inference-session.ts. */
export interface OnnxRuntime {
  readonly env: { logLevel?: 'fatal' };
  readonly InferenceSession: {
    create(path: string, options: OnnxSessionOptions): Promise<OnnxSession>;
  };
  readonly Tensor: new (type: string, data: OnnxData, dims: readonly number[]) => OnnxTensor;
}

/** Why models of ONNX cannot run here, with what would help; null: they can, as far as can be said without loading anything. */
export function onnxProblem(): string | null {
  if (findOnnxRuntime() !== null) return null;
  return `ONNX models need the package ${ONNX_PACKAGE}, which is not here: "skein setup onnx" installs it, or "npm install ${ONNX_PACKAGE}" in the folder of your program.`;
}

/** Loads the package. @throws BackendError where it is not there, or cannot be loaded */
export function loadOnnxRuntime(): OnnxRuntime {
  const installation = findOnnxRuntime();
  if (installation === null) throw new BackendError(onnxProblem()!);
  const { folder } = installation;
  try {
    const runtime = createRequire(join(folder, 'package.json'))(folder) as OnnxRuntime;
    runtime.env.logLevel = 'fatal';
    return runtime;
  } catch (error) {
    throw new BackendError(`${ONNX_PACKAGE} in ${folder} cannot be loaded: ${messageOf(error)}`, {
      cause: error,
    });
  }
}
