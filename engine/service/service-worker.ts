import { existsSync } from 'node:fs';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { workerData } from 'node:worker_threads';
import { recordOf } from '../../base/error-record.js';
import type { WorkerWires } from '../../callbacks/worker-data.js';
import type { WorkerLife } from '../../callbacks/worker-messages.js';
import { BackendError } from '../backends/backend.js';
import { ModelCode } from '../backends/model-code.js';
import { syntaxPlace } from '../backends/module/syntax-place.js';
import { serveCommands } from '../backends/serve-commands.js';
import type { ServiceCommand, ServiceMessage, ServiceWorkerData } from './service-messages.js';
import type { VectorTransformer } from './vector-transformer.js';

await main(workerData as ServiceWorkerData & WorkerWires);

/** Makes the transformer, says that it is ready, and runs batches one after the other. */
async function main({ module, initArguments, ...wires }: ServiceWorkerData & WorkerWires): Promise<void> {
  const transformer = await construct(module, initArguments);
  const { port } = wires;
  const post = (message: ServiceMessage | WorkerLife<null>) => port.postMessage(message);
  post({ type: 'ready', info: null });
  serveCommands<ServiceCommand>(wires, {
    async run({ batch }) {
      try {
        post({ type: 'result', result: await transformed(transformer, batch) });
      } catch (thrown) {
        post({ type: 'thrown', error: recordOf(thrown) });
      }
    },
    tearDown: () => {},
  });
}

async function construct(module: string, initArguments: unknown): Promise<VectorTransformer> {
  const code = codeOf(module);
  const file = code.relative(module) ?? module;
  const Transformer = await load(code, module, file);
  if (typeof Transformer !== 'function') {
    throw new BackendError(`${file} has no class as its default export.`);
  }
  let transformer: VectorTransformer;
  try {
    transformer = new Transformer(initArguments);
  } catch (error) {
    throw code.failure(`The constructor of ${Transformer.name} threw`, error);
  }
  if (typeof transformer.transform !== 'function') {
    throw new BackendError(`The class ${Transformer.name} of ${file} has no method 'transform'.`);
  }
  return transformer;
}

type TransformerClass = new (initArguments: unknown) => VectorTransformer;

/** The default export of the module. @throws BackendError that says where in it an error is */
async function load(code: ModelCode, module: string, file: string): Promise<TransformerClass | undefined> {
  try {
    return ((await import(module)) as { default?: TransformerClass }).default;
  } catch (error) {
    if (module.startsWith('file:') && !existsSync(fileURLToPath(module)))
      throw new BackendError(`${fileURLToPath(module)} cannot be loaded: there is no such file`);
    throw code.failure(`${file} cannot be loaded: error`, error, await syntaxPlace(code, module, error));
  }
}

/** Places in the module and next to it are reported as `squares.mjs:3:11`. */
function codeOf(module: string): ModelCode {
  const directory = module.startsWith('file:') ? dirname(fileURLToPath(module)) : process.cwd();
  return new ModelCode({ directory, versionDirectory: directory, version: '' });
}

async function transformed(transformer: VectorTransformer, batch: unknown): Promise<unknown> {
  const pre = transformer.preprocess ? await transformer.preprocess(batch) : batch;
  const trans = await transformer.transform(pre);
  return transformer.postprocess ? transformer.postprocess(pre, trans) : trans;
}
