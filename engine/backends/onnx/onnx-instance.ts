import { join } from 'node:path';
import { messageOf } from '../../../base/error-text.js';
import { asSentence } from '../../../base/sentences.js';
import { elementsIn } from '../../../callbacks/infer/datatypes.js';
import type { InferTensor } from '../../../callbacks/infer/infer-types.js';
import type { ModelConfig } from '../../../models/repository/model-config.js';
import type { BatchRow, Instance, InstanceRequest, InstanceSetup } from '../backend.js';
import { BackendError } from '../backend-error.js';
import { gatherRows, splitRows } from '../gather.js';
import { byStateSizes, rowOf } from '../sequences/batch-rows.js';
import { controlsOf } from '../sequences/sequence-runner.js';
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
  readonly #controls: ReturnType<typeof controlsOf>;
  readonly #stateInputs: ReadonlySet<string>;
  readonly #stateOutputs: readonly string[];
  /** Inputs of the file that are a number for each row and no list of numbers. */
  readonly #flat: ReadonlySet<string>;

  constructor(runtime: OnnxRuntime, session: OnnxSession, config: ModelConfig) {
    this.#runtime = runtime;
    this.#session = session;
    this.#config = config;
    this.#controls = controlsOf(config);
    const states = config.sequence_batching?.state ?? [];
    this.#stateInputs = new Set(states.map((state) => state.input_name));
    this.#stateOutputs = states.map((state) => state.output_name);
    const ofRank1 = session.inputMetadata.filter(({ shape }) => shape?.length === 1);
    this.#flat = new Set(ofRank1.map(({ name }) => name));
  }

  async execute(requests: readonly InstanceRequest[], rows?: readonly BatchRow[]): Promise<void> {
    for (const group of this.#groups(rows ?? requests.map(rowOf))) await this.#run(group);
  }

  /** Rows that can be run at once: states of other sizes cannot be rows of one tensor. */
  #groups(rows: readonly BatchRow[]): readonly (readonly BatchRow[])[] {
    if (this.#controls === null || this.#stateInputs.size === 0) return [rows];
    const keepsSlots = this.#config.sequence_batching!.oldest === undefined;
    return byStateSizes(rows, this.#stateInputs, { controls: this.#controls, keepsSlots });
  }

  async #run(rows: readonly BatchRow[]): Promise<void> {
    const wanted = this.#wanted(rows);
    const results = await this.#session.run(this.#feeds(rows), wanted);
    const sizes = rows.map(({ batchSize }) => batchSize);
    const outputs = wanted.map((name) => this.#rowsOf(fromOnnx(name, results[name]!), sizes));
    for (const [i, { request }] of rows.entries()) {
      if (request === null) continue;
      const own = outputs.map((parts) => parts[i]!);
      const { outputs: names } = request;
      const isFor = (name: string) =>
        names === null || names.includes(name) || this.#stateOutputs.includes(name);
      request.send(own.filter(({ name }) => isFor(name)));
    }
  }

  close(): Promise<void> {
    return this.#session.release();
  }

  #feeds(rows: readonly BatchRow[]): Record<string, OnnxTensor> {
    const feeds: Record<string, OnnxTensor> = {};
    for (const { name, reshape } of this.#config.input) {
      const whole = inputOf(rows, name);
      if (whole === null) continue; // optional, and nobody gave it
      const shaped = reshape === undefined ? whole : this.#reshaped(whole, reshape.shape);
      feeds[name] = toOnnx(this.#runtime, shaped);
    }
    for (const name of this.#controls?.names ?? []) {
      const whole = inputOf(rows, name)!;
      const shaped = this.#flat.has(name) ? { ...whole, shape: [elementsIn(whole.shape)] } : whole;
      feeds[name] = toOnnx(this.#runtime, shaped);
    }
    for (const name of this.#stateInputs) feeds[name] = toOnnx(this.#runtime, inputOf(rows, name)!);
    return feeds;
  }

  /** Outputs that some request wants, in the configuration's order, and states: no other is computed. */
  #wanted(rows: readonly BatchRow[]): string[] {
    const names = [
      ...this.#config.output.map(({ name }) => name).filter((name) => !this.#stateOutputs.includes(name)),
      ...this.#stateOutputs,
    ];
    const asked = rows.flatMap(({ request }) => (request === null ? [] : [request.outputs]));
    if (asked.includes(null)) return names;
    const some = new Set([...asked.flatMap((one) => one!), ...this.#stateOutputs]);
    return names.filter((name) => some.has(name));
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
    const output = this.#config.output.find(({ name }) => name === tensor.name);
    const shown = output?.reshape === undefined ? tensor : this.#reshaped(tensor, output.dims);
    return this.#config.max_batch_size > 0 ? splitRows(shown, sizes) : [shown];
  }
}

/** An input of all rows as one tensor; null: no row has it. @throws BackendError where some have it and others do not */
function inputOf(rows: readonly BatchRow[], name: string): InferTensor | null {
  const parts = rows.map(({ inputs }) => inputs.find((input) => input.name === name));
  const given = parts.filter((part) => part !== undefined);
  if (given.length === 0) return null;
  if (given.length < parts.length)
    throw new BackendError(`Input '${name}' is not in every request of the batch.`);
  return gatherRows(given);
}
