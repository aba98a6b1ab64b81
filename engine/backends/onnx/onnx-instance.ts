import { join } from 'node:path';
import { messageOf } from '../../../base/error-text.js';
import { asSentence } from '../../../base/sentences.js';
import { elementsIn } from '../../../callbacks/infer/datatypes.js';
import type { InferTensor } from '../../../callbacks/infer/infer-types.js';
import type { ModelConfig } from '../../../models/repository/model-config.js';
import type { Instance, InstanceRequest, InstanceSetup } from '../backend.js';
import { BackendError } from '../backend-error.js';
import { gatherRows, splitRows } from '../gather.js';
import {
  loadOnnxRuntime,
  ONLY_FATAL,
  type OnnxRuntime,
  type OnnxSession,
  type OnnxTensor,
} from './onnx-runtime.js';
import { fromOnnx, toOnnx } from './onnx-tensors.js';

/** Opens an ONNX file in this worker. @throws BackendError */
export async function openInstance({ files, config }: InstanceSetup): Promise<Instance> {
  const runtime = loadOnnxRuntime();
  const path = join(files.versionDirectory, config.default_model_filename || 'model.onnx');
  const session = await openSession(runtime, path, threadsOf(config, 'intra_op_thread_count'), config);
  return new OnnxInstance(runtime, session, config);
}

/** @throws BackendError where the file is no model that ONNX Runtime reads */
export async function openSession(
  runtime: OnnxRuntime,
  path: string,
  intraOpNumThreads: number,
  config?: ModelConfig,
): Promise<OnnxSession> {
  try {
    return await runtime.InferenceSession.create(path, {
      intraOpNumThreads,
      interOpNumThreads: config === undefined ? 1 : threadsOf(config, 'inter_op_thread_count'),
      graphOptimizationLevel: 'all',
      logSeverityLevel: ONLY_FATAL,
    });
  } catch (error) {
    throw new BackendError(`${path} cannot be opened: ${asSentence(messageOf(error))}`, { cause: error });
  }
}

/** Threads of one instance: 1 unless its configuration says more, since several instances and batches run beside each other. */
function threadsOf({ parameters }: ModelConfig, name: string): number {
  const text = parameters[name]?.string_value;
  if (text === undefined) return 1;
  if (/^[1-9]\d{0,2}$/.test(text)) return Number(text);
  throw new BackendError(
    `parameters.${name} is ${JSON.stringify(text)}; a whole number from 1 to 999 is expected.`,
  );
}

/**
 * Runs batches of an ONNX model: rows of all requests as one tensor for each input, one run, and the rows of each output given back.
 *
 *   a: INPUT0 [2, 16]  --+                                       +--> a: OUTPUT0 [2, 16]
 *   b: INPUT0 [1, 16]  --+--> INPUT0 [3, 16] --run--> OUTPUT0 [3, 16] +--> b: OUTPUT0 [1, 16]
 */
class OnnxInstance implements Instance {
  readonly #runtime: OnnxRuntime;
  readonly #session: OnnxSession;
  readonly #config: ModelConfig;

  constructor(runtime: OnnxRuntime, session: OnnxSession, config: ModelConfig) {
    this.#runtime = runtime;
    this.#session = session;
    this.#config = config;
  }

  async execute(requests: readonly InstanceRequest[]): Promise<void> {
    const wanted = this.#wanted(requests);
    const results = await this.#session.run(this.#feeds(requests), wanted);
    const sizes = requests.map(({ batchSize }) => batchSize);
    const outputs = wanted.map((name) => this.#rowsOf(fromOnnx(name, results[name]!), sizes));
    for (const [i, request] of requests.entries()) {
      const own = outputs.map((rows) => rows[i]!);
      const { outputs: names } = request;
      request.send(names === null ? own : own.filter(({ name }) => names.includes(name)));
    }
  }

  close(): Promise<void> {
    return this.#session.release();
  }

  #feeds(requests: readonly InstanceRequest[]): Record<string, OnnxTensor> {
    const feeds: Record<string, OnnxTensor> = {};
    for (const { name, reshape } of this.#config.input) {
      const parts = requests.map(({ inputs }) => inputs.find((input) => input.name === name));
      const given = parts.filter((part) => part !== undefined);
      if (given.length === 0) continue; // optional, and nobody gave it
      if (given.length < parts.length) {
        throw new BackendError(`Input '${name}' is not in every request of the batch.`);
      }
      const whole = gatherRows(given);
      feeds[name] = toOnnx(
        this.#runtime,
        reshape === undefined ? whole : this.#reshaped(whole, reshape.shape),
      );
    }
    return feeds;
  }

  /** Outputs that some request wants, in the configuration's order: no other is computed. */
  #wanted(requests: readonly InstanceRequest[]): string[] {
    const names = this.#config.output.map(({ name }) => name);
    if (requests.some(({ outputs }) => outputs === null)) return names;
    const asked = new Set(requests.flatMap(({ outputs }) => outputs!));
    return names.filter((name) => asked.has(name));
  }

  #reshaped(tensor: InferTensor, dims: readonly number[]): InferTensor {
    const rows = this.#config.max_batch_size > 0 ? tensor.shape.slice(0, 1) : [];
    const known = [...rows, ...dims];
    const elements = elementsIn(tensor.shape);
    const others = elementsIn(known.filter((size) => size !== -1));
    return { ...tensor, shape: known.map((size) => (size === -1 ? elements / others : size)) };
  }

  /** Each request's part of an output, in the shape that the configuration shows to clients. */
  #rowsOf(tensor: InferTensor, sizes: readonly number[]): readonly InferTensor[] {
    const output = this.#config.output.find(({ name }) => name === tensor.name)!;
    const shown = output.reshape === undefined ? tensor : this.#reshaped(tensor, output.dims);
    return this.#config.max_batch_size > 0 ? splitRows(shown, sizes) : [shown];
  }
}
