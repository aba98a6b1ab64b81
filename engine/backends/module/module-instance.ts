import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { BYTES_PER_ELEMENT, datatypeOf, elementsIn, isDatatype } from '../../../callbacks/infer/datatypes.js';
import type { InferTensor } from '../../../callbacks/infer/infer-types.js';
import type { ModelConfig } from '../../../models/repository/model-config.js';
import type { Instance, InstanceRequest, InstanceServices, InstanceSetup } from '../backend.js';
import { BackendError } from '../backend-error.js';
import { ModelCode } from '../model-code.js';
import { isOwn, propertyOf, thrownText } from '../thrown.js';
import type {
  ModelModule,
  ModuleCall,
  ModuleCallResult,
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
  const path = join(files.versionDirectory, named);
  if (named !== FILENAMES[0] || existsSync(path)) return path;
  const found = FILENAMES.find((name) => existsSync(join(files.versionDirectory, name)));
  return found === undefined ? path : join(files.versionDirectory, found);
}

/** Why this Node.js cannot read the file, where that is since it reads no TypeScript; else null. */
function noTypeScript(file: string, error: unknown): string | null {
  if (propertyOf(error, 'code') !== 'ERR_UNKNOWN_FILE_EXTENSION' || !file.endsWith('.ts')) return null;
  return `this Node.js (${process.version}) reads no TypeScript; Node.js 22.18 and later do, or compile it to model.mjs`;
}

async function inferBy(
  { infer }: InstanceServices,
  { model, version = '', inputs, outputs, parameters, decoupled }: ModuleCall,
): Promise<ModuleCallResult> {
  const tensors = Object.entries(inputs).map(([name, { datatype: given, data, shape }]) => {
    const datatype = given ?? datatypeOfData(data);
    if (!isDatatype(datatype)) {
      const known = Object.keys(BYTES_PER_ELEMENT).join(', ');
      throw new BackendError(`the datatype of input '${name}' of a call is none of ${known}`);
    }
    return tensorOf(name, datatype, { data, ...(shape && { shape }) }, (count) => [count]);
  });
  const answers = await infer({
    model,
    version,
    inputs: tensors,
    outputs: outputs ?? null,
    parameters: parameters ?? {},
    decoupled: decoupled === true,
  });
  const responses = answers.map((answer) => ({
    outputs: Object.fromEntries(answer.outputs.map((output) => [output.name, moduleInput(output)])),
    parameters: answer.parameters ?? {},
  }));
  return { outputs: responses[0]?.outputs ?? {}, responses };
}

class ModuleInstance implements Instance {
  readonly #module: ModelModule;
  readonly #config: ModelConfig;
  readonly #code: ModelCode;
  readonly #services: InstanceServices;

  constructor(module: ModelModule, config: ModelConfig, code: ModelCode, services: InstanceServices) {
    this.#module = module;
    this.#config = config;
    this.#code = code;
    this.#services = services;
  }

  async execute(requests: readonly InstanceRequest[]): Promise<void> {
    try {
      await called(this.#code, this.#services, 'execute', () => this.#run(requests));
    } catch (error) {
      this.#services.report(error as Error);
      for (const request of requests) request.fail(this.#failed(error));
    }
  }

  async #run(requests: readonly InstanceRequest[]): Promise<void> {
    const results = await this.#module.execute(requests.map((request) => this.#requestOf(request)));
    if (results === undefined) return; // it has given its answers through `send`
    if (isAsyncIterable(results)) {
      for await (const step of results) {
        this.#answerAll(requests, step, 'yielded');
        if (requests.every(({ isOver }) => isOver)) break;
        await requests[0]?.room;
      }
    } else this.#answerAll(requests, results, 'returned');
  }

  /** @param how what execute did with the list */
  #answerAll(requests: readonly InstanceRequest[], results: ModuleStep, how: string): void {
    if (!Array.isArray(results)) throw new BackendError(`execute ${how} no list of responses`);
    if (results.length !== requests.length) {
      throw new BackendError(`execute ${how} ${results.length} responses to ${requests.length} requests`);
    }
    for (const [i, request] of requests.entries()) {
      const result: ModuleResult | undefined = results[i];
      if (result !== undefined || how === 'returned') this.#answer(request, result as ModuleResult);
    }
  }

  async close(): Promise<void> {
    await called(this.#code, this.#services, 'finalize', () => this.#module.finalize?.());
  }

  #requestOf(request: InstanceRequest): ModuleRequest {
    const { id, inputs, outputs, parameters, batchSize } = request;
    return {
      id,
      inputs: Object.fromEntries(inputs.map((input) => [input.name, moduleInput(input)])),
      outputs,
      parameters,
      batchSize,
      send: (response) => {
        this.#send(request, response);
        return request.room;
      },
      get isCancelled() {
        return request.isCancelled;
      },
    };
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

  #tensorsOf({ batchSize, outputs: wanted }: InstanceRequest, response: ModuleResponse): InferTensor[] {
    const outputs: unknown = response?.outputs;
    if (typeof outputs !== 'object' || outputs === null) throw new Error('a response has no outputs');
    return Object.entries(response.outputs)
      .filter(([name]) => wanted === null || wanted.includes(name))
      .map(([name, output]) => {
        const known = this.#config.output.find((one) => one.name === name);
        if (known === undefined) throw new Error(`'${name}' is no output of the model`);
        const rows = this.#config.max_batch_size > 0 ? [batchSize] : [];
        const shapeOfNone = (elements: number) => filled([...rows, ...known.dims], elements);
        return tensorOf(name, datatypeOf(known.data_type), output ?? { data: null }, shapeOfNone);
      });
  }
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
