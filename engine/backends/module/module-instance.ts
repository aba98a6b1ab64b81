import { pathToFileURL } from 'node:url';
import { BYTES_PER_ELEMENT, datatypeOf, elementsIn, isDatatype } from '../../../callbacks/infer/datatypes.js';
import type { InferSequence, InferTensor } from '../../../callbacks/infer/infer-types.js';
import { sequenceNumber, whyNotSequenceText } from '../../../callbacks/infer/sequence-id.js';
import type { ModelConfig, ModelOutput } from '../../../models/repository/model-config.js';
import {
  BackendError,
  type BatchRow,
  type Instance,
  type InstanceRequest,
  type InstanceServices,
  type InstanceSetup,
} from '../backend.js';
import { whyNotTensor } from '../check-outputs.js';
import { ModelCode } from '../model-code.js';
import { modelFile } from '../model-file.js';
import { BatchInputs } from '../ragged/batch-inputs.js';
import { ScatteredOutputs } from '../ragged/scattered-outputs.js';
import { modelInputs, reshaped } from '../reshaped.js';
import { rowOf } from '../sequences/batch-rows.js';
import { controlsOf } from '../sequences/sequence-runner.js';
import { isOwn, propertyOf, thrownText } from '../thrown.js';
import type {
  ModelModule,
  ModuleCall,
  ModuleCallResult,
  ModuleOutput,
  ModuleRequest,
  ModuleResponse,
  ModuleResult,
  ModuleSetup,
  ModuleStep,
} from './model-module.js';
import { datatypeOfData, moduleInput, tensorOf } from './module-tensors.js';
import { syntaxPlace } from './syntax-place.js';

/** Names of the file where the configuration names none, the first that is there. */
const FILENAMES = ['model.mjs', 'model.js', 'model.ts'];

/** Opens a model's module in this worker. @throws BackendError */
export async function openInstance(setup: InstanceSetup, services: InstanceServices): Promise<Instance> {
  const { files, config, instanceName } = setup;
  const code = new ModelCode(files);
  const url = pathToFileURL(fileOf(setup)).href;
  const file = code.relative(url) ?? config.default_model_filename;
  const module = await load(code, url, file, services);
  if (typeof module.execute !== 'function') {
    throw new BackendError(`${file} exports no function 'execute'.`);
  }
  const given: ModuleSetup = {
    modelConfig: config,
    modelName: config.name,
    modelVersion: files.version,
    modelRepository: files.directory,
    instanceName,
    infer: (call) => inferBy(services, call),
  };
  await called(code, services, 'initialize', () => module.initialize?.(given));
  return new ModuleInstance(module, config, code, services);
}

async function load(
  code: ModelCode,
  url: string,
  file: string,
  { settled }: InstanceServices,
): Promise<ModelModule> {
  try {
    return await settled(`the top level of ${file}`, () => import(url) as Promise<ModelModule>);
  } catch (error) {
    if (isOwn(error)) throw error;
    const reason = noTypeScript(file, error);
    if (reason !== null) throw new BackendError(`${file} cannot be loaded: ${reason}`);
    throw code.failure(`${file} cannot be loaded: error`, error, await syntaxPlace(code, url, error));
  }
}

/** Awaits a function of the module. @throws BackendError that says where in the module it failed */
async function called<T>(
  code: ModelCode,
  { settled }: InstanceServices,
  name: string,
  run: () => T | Promise<T>,
): Promise<T> {
  try {
    return await settled(name, run);
  } catch (error) {
    throw isOwn(error) ? error : code.failure(`${name} threw`, error);
  }
}

function fileOf({ files, config }: InstanceSetup): string {
  const { default_model_filename: named } = config;
  return modelFile(files.versionDirectory, named === FILENAMES[0] ? FILENAMES : [named]);
}

/** Why this Node.js cannot read the file, where that is since it reads no TypeScript; else null. */
function noTypeScript(file: string, error: unknown): string | null {
  if (propertyOf(error, 'code') !== 'ERR_UNKNOWN_FILE_EXTENSION' || !file.endsWith('.ts')) return null;
  return `this Node.js (${process.version}) reads no TypeScript; Node.js 22.18 and later do, or compile it to model.mjs`;
}

async function inferBy(
  { infer }: InstanceServices,
  { model, version = '', inputs, outputs, parameters, sequence, decoupled, request }: ModuleCall,
): Promise<ModuleCallResult> {
  const tensors = Object.entries(inputs).map(([name, { datatype: given, data, shape }]) => {
    const datatype = given ?? datatypeOfData(data);
    if (!isDatatype(datatype)) {
      const known = Object.keys(BYTES_PER_ELEMENT).join(', ');
      throw new BackendError(`the datatype of input '${name}' of a call is none of ${known}`);
    }
    return tensorOf(name, datatype, { data, ...(shape && { shape }) }, (count) => [count]);
  });
  const number = request === undefined ? undefined : numberInBatch.get(request);
  const answers = await infer({
    model,
    version,
    inputs: tensors,
    outputs: outputs ?? null,
    parameters: parameters ?? {},
    sequence: sequence === undefined ? null : sequenceOf(sequence),
    decoupled: decoupled === true,
    ...(number === undefined ? {} : { request: number }),
  });
  const responses = answers.map((answer) => ({
    outputs: Object.fromEntries(answer.outputs.map((output) => [output.name, moduleInput(output)])),
    parameters: answer.parameters ?? {},
  }));
  return { outputs: responses[0]?.outputs ?? {}, responses };
}

/** @throws BackendError for an id that no sequence can have */
function sequenceOf({ id, start, end }: NonNullable<ModuleCall['sequence']>): InferSequence {
  const number = typeof id === 'string' ? null : sequenceNumber(id);
  const isText = typeof id === 'string' && id !== '' && whyNotSequenceText(id) === null;
  if (!isText && (number === null || number === 0n)) {
    throw new BackendError(
      "a call of another model is refused: its sequence's id is no whole number from 1 to 2^64 - 1 and no text of 1 to 128 characters",
    );
  }
  return { id: number ?? (id as string), start: start === true, end: end === true };
}
/** Requests as modules have them, with their number in the batch. */
const numberInBatch = new WeakMap<ModuleRequest, number>();

class ModuleInstance implements Instance {
  readonly #module: ModelModule;
  readonly #config: ModelConfig;
  readonly #code: ModelCode;
  readonly #services: InstanceServices;
  readonly #seesRows: boolean;
  readonly #batchInputs: BatchInputs;
  readonly #scattered: ScatteredOutputs;

  constructor(module: ModelModule, config: ModelConfig, code: ModelCode, services: InstanceServices) {
    this.#module = module;
    this.#config = config;
    this.#code = code;
    this.#services = services;
    this.#seesRows = controlsOf(config)?.hasReady === true;
    this.#batchInputs = new BatchInputs(config);
    this.#scattered = new ScatteredOutputs(config);
  }

  async execute(requests: readonly InstanceRequest[], rows?: readonly BatchRow[]): Promise<void> {
    // A module that does not ask which rows are empty is given none of them.
    const given = this.#seesRows ? rows : undefined;
    try {
      await called(this.#code, this.#services, 'execute', () => this.#run(requests, given));
    } catch (error) {
      this.#services.report(error as Error);
      for (const request of requests) request.fail(this.#failed(error));
    }
  }

  async #run(requests: readonly InstanceRequest[], rows?: readonly BatchRow[]): Promise<void> {
    const given = (rows ?? requests.map(rowOf)).map((row) => ({
      ...row,
      inputs: modelInputs(this.#config, row.inputs),
    }));
    const made = this.#batchInputs.of(given);
    const numbers = new Map(requests.map((request, i) => [request, i]));
    const asked = given.map(({ request, inputs }, i) => {
      const all = [...inputs, ...made[i]!];
      return request === null ? emptyRequest(all) : this.#requestOf(request, all, numbers.get(request)!);
    });
    const results = await this.#module.execute(asked);
    if (results === undefined) return; // it has given its answers through `send`
    const places = given.map(({ request }) => request);
    if (isAsyncIterable(results)) {
      for await (const step of results) {
        this.#answerAll(places, step, 'yielded');
        if (requests.every(({ isOver }) => isOver)) break;
        await requests[0]?.room;
      }
    } else this.#answerAll(places, results, 'returned');
  }

  /** @param places requests in the order of the answers; null: an empty row @param how what execute did with the list */
  #answerAll(places: readonly (InstanceRequest | null)[], results: ModuleStep, how: string): void {
    if (!Array.isArray(results)) throw new BackendError(`execute ${how} no list of responses`);
    if (results.length !== places.length) {
      throw new BackendError(`execute ${how} ${results.length} responses to ${places.length} requests`);
    }
    for (const [i, request] of places.entries()) {
      const result: ModuleResult | undefined = results[i];
      if (request === null) continue;
      // A request that was put back may have no answer yet.
      const isMissing = result === undefined && (how !== 'returned' || request.isAgain);
      if (!isMissing) this.#answer(request, result as ModuleResult);
    }
  }

  async close(): Promise<void> {
    await called(this.#code, this.#services, 'finalize', () => this.#module.finalize?.());
  }

  /** @param inputs of the request, and those that describe its batch */
  #requestOf(request: InstanceRequest, inputs: readonly InferTensor[], number: number): ModuleRequest {
    const { id, sequence, outputs, parameters, batchSize, traceparent } = request;
    const own: ModuleRequest = {
      id,
      sequence: sequence && {
        number: sequence.number,
        id: sequence.id,
        start: sequence.start,
        end: sequence.end,
        slot: sequence.slot,
      },
      inputs: Object.fromEntries(inputs.map((input) => [input.name, moduleInput(input)])),
      outputs,
      parameters,
      batchSize,
      traceparent,
      send: (response) => {
        this.#send(request, response);
        return request.room;
      },
      reschedule: () => request.reschedule(),
      get isCancelled() {
        return request.isCancelled;
      },
    };
    numberInBatch.set(own, number);
    return own;
  }

  #answer(request: InstanceRequest, result: ModuleResult): void {
    if (result instanceof Error) request.fail(this.#failed(result));
    else if (typeof result === 'object' && result !== null && 'error' in result) {
      request.fail(this.#code.withoutPaths(thrownText(result.error)));
    } else this.#send(request, result);
  }

  #failed(error: unknown): string {
    return `the model '${this.#config.name}' failed: ${this.#code.withoutPaths(thrownText(error))}`;
  }

  #send(request: InstanceRequest, response: ModuleResponse): void {
    let tensors: InferTensor[];
    try {
      tensors = this.#tensorsOf(request, response);
    } catch (error) {
      request.fail(`the model '${this.#config.name}' gave a wrong answer: ${thrownText(error)}`);
      return;
    }
    request.send(tensors, response.parameters);
  }

  #tensorsOf(request: InstanceRequest, response: ModuleResponse): InferTensor[] {
    const { outputs: wanted } = request;
    const outputs: unknown = response?.outputs;
    if (typeof outputs !== 'object' || outputs === null) throw new Error('a response has no outputs');
    const states = this.#config.sequence_batching?.state ?? [];
    return Object.entries(response.outputs)
      .map(([name, output]) => {
        const state = states.find((one) => one.output_name === name);
        return { name, output, state, known: this.#config.output.find((one) => one.name === name) ?? state };
      })
      .filter(({ name, state }) => state !== undefined || wanted === null || wanted.includes(name))
      .map(({ name, output, known }) => {
        if (known === undefined) throw new Error(`'${name}' is no output of the model`);
        return this.#outputOf(name, output, known, request);
      });
  }

  /** An output of the module's code, in the shape that clients see. @throws an Error where it is not of `reshape`'s shape */
  #outputOf(
    name: string,
    output: ModuleOutput,
    known: Pick<ModelOutput, 'data_type' | 'dims' | 'reshape'>,
    { batchSize, inputs }: InstanceRequest,
  ): InferTensor {
    const { max_batch_size: maxBatchSize, model_transaction_policy: policy } = this.#config;
    const { data_type, dims, reshape } = known;
    const own = reshape?.shape ?? dims;
    const isBatched = maxBatchSize > 0;
    const shapeOfNone = (elements: number) =>
      this.#scattered.has(name)
        ? this.#scattered.shapeOf(name, { inputs: modelInputs(this.#config, inputs) })
        : filled([...(isBatched ? [batchSize] : []), ...own], elements);
    const tensor = tensorOf(name, datatypeOf(data_type), output ?? { data: null }, shapeOfNone);
    if (reshape === undefined) return tensor;
    const rows = isBatched ? [policy.decoupled ? -1 : batchSize] : [];
    const wrong = whyNotTensor(tensor, datatypeOf(data_type), [...rows, ...own]);
    if (wrong !== null) throw new Error(wrong);
    return reshaped(tensor, dims, isBatched);
  }
}

/** A row of a batch without a client's request, as a module sees it. */
function emptyRequest(inputs: readonly InferTensor[]): ModuleRequest {
  return {
    id: '',
    sequence: null,
    inputs: Object.fromEntries(inputs.map((input) => [input.name, moduleInput(input)])),
    outputs: [],
    parameters: {},
    batchSize: 1,
    traceparent: null,
    send: async () => {},
    reschedule: () => {},
    isCancelled: true,
  };
}

/** Of whatever a module's code returned. */
function isAsyncIterable(results: unknown): results is AsyncIterable<ModuleStep> {
  return typeof results === 'object' && results !== null && Symbol.asyncIterator in results;
}

/** A shape of which one size may be free: the elements tell it. */
function filled(dims: readonly number[], elements: number): readonly number[] {
  if (dims.filter((size) => size === -1).length !== 1) return dims;
  const others = elementsIn(dims.filter((size) => size !== -1));
  return dims.map((size) => (size === -1 ? elements / others : size));
}
