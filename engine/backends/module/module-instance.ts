import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { messageOf } from '../../../base/error-text.js';
import { datatypeOf, elementsIn } from '../../../callbacks/infer/datatypes.js';
import type { InferTensor } from '../../../callbacks/infer/infer-types.js';
import type { ModelConfig } from '../../../models/repository/model-config.js';
import type { Instance, InstanceRequest, InstanceServices, InstanceSetup } from '../backend.js';
import { BackendError } from '../backend-error.js';
import type {
  ModelModule,
  ModuleCall,
  ModuleRequest,
  ModuleResponse,
  ModuleResult,
  ModuleStep,
} from './model-module.js';
import { datatypeOfData, moduleInput, tensorOf } from './module-tensors.js';

/** Names of the file where the configuration names none, the first that is there. */
const FILENAMES = ['model.mjs', 'model.js', 'model.ts'];

/** Opens a model's module in this worker. @throws BackendError */
export async function openInstance(setup: InstanceSetup, services: InstanceServices): Promise<Instance> {
  const { files, config, instanceName } = setup;
  const path = fileOf(setup);
  let module: ModelModule;
  try {
    module = (await import(pathToFileURL(path).href)) as ModelModule;
  } catch (error) {
    throw new BackendError(`${path} cannot be loaded: ${whyNotLoaded(path, error)}`, { cause: error });
  }
  if (typeof module.execute !== 'function') {
    throw new BackendError(`${path} exports no function 'execute'.`);
  }
  try {
    await module.initialize?.({
      modelConfig: config,
      modelName: config.name,
      modelVersion: files.version,
      modelRepository: files.directory,
      instanceName,
      infer: (call) => inferBy(services, call),
    });
  } catch (error) {
    throw new BackendError(`initialize of ${path} failed: ${messageOf(error)}`, { cause: error });
  }
  return new ModuleInstance(module, config);
}

function fileOf({ files, config }: InstanceSetup): string {
  const { default_model_filename: named } = config;
  const path = join(files.versionDirectory, named);
  if (named !== FILENAMES[0] || existsSync(path)) return path;
  const found = FILENAMES.find((name) => existsSync(join(files.versionDirectory, name)));
  return found === undefined ? path : join(files.versionDirectory, found);
}

function whyNotLoaded(path: string, error: unknown): string {
  const { code } = error as NodeJS.ErrnoException;
  if (code === 'ERR_UNKNOWN_FILE_EXTENSION' && path.endsWith('.ts')) {
    return `this Node.js (${process.version}) reads no TypeScript; Node.js 22.18 and later do, or compile it to model.mjs`;
  }
  return messageOf(error);
}

async function inferBy(
  { infer }: InstanceServices,
  { model, version = '', inputs, outputs, parameters }: ModuleCall,
) {
  const tensors = Object.entries(inputs).map(([name, { datatype, data, shape }]) =>
    tensorOf(name, datatype ?? datatypeOfData(data), { data, ...(shape && { shape }) }, (count) => [count]),
  );
  const responses = await infer({
    model,
    version,
    inputs: tensors,
    outputs: outputs ?? null,
    parameters: parameters ?? {},
  });
  const [first] = responses;
  return {
    outputs: Object.fromEntries((first?.outputs ?? []).map((output) => [output.name, moduleInput(output)])),
  };
}

class ModuleInstance implements Instance {
  readonly #module: ModelModule;
  readonly #config: ModelConfig;

  constructor(module: ModelModule, config: ModelConfig) {
    this.#module = module;
    this.#config = config;
  }

  async execute(requests: readonly InstanceRequest[]): Promise<void> {
    const results = await this.#module.execute(requests.map((request) => this.#requestOf(request)));
    if (results === undefined) return; // it has given its answers through `send`
    if (isAsyncIterable(results)) {
      for await (const step of results) this.#answerAll(requests, step, 'yielded');
    } else this.#answerAll(requests, results, 'returned');
  }

  /** @param how what execute did with the list */
  #answerAll(requests: readonly InstanceRequest[], results: ModuleStep, how: string): void {
    if (!Array.isArray(results)) throw new Error(`execute ${how} no list of responses`);
    if (results.length !== requests.length) {
      throw new Error(`execute ${how} ${results.length} responses to ${requests.length} requests`);
    }
    for (const [i, request] of requests.entries()) {
      const result: ModuleResult | undefined = results[i];
      if (result !== undefined || how === 'returned') this.#answer(request, result as ModuleResult);
    }
  }

  async close(): Promise<void> {
    await this.#module.finalize?.();
  }

  #requestOf(request: InstanceRequest): ModuleRequest {
    const { id, inputs, outputs, parameters, batchSize } = request;
    return {
      id,
      inputs: Object.fromEntries(inputs.map((input) => [input.name, moduleInput(input)])),
      outputs,
      parameters,
      batchSize,
      send: (response) => this.#send(request, response),
    };
  }

  #answer(request: InstanceRequest, result: ModuleResult): void {
    if (result instanceof Error) request.fail(`the model '${this.#config.name}' failed: ${result.message}`);
    else if (typeof result === 'object' && result !== null && 'error' in result)
      request.fail(String(result.error));
    else this.#send(request, result);
  }

  #send(request: InstanceRequest, response: ModuleResponse): void {
    let tensors: InferTensor[];
    try {
      tensors = this.#tensorsOf(request, response);
    } catch (error) {
      request.fail(`the model '${this.#config.name}' gave a wrong answer: ${messageOf(error)}`);
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
