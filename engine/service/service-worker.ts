import { workerData } from 'node:worker_threads';
import { messageOf } from '../../base/error-text.js';
import type { WorkerLife } from '../../callbacks/worker-messages.js';
import type { WorkerWires } from '../../callbacks/worker-wires.js';
import { BackendError } from '../backends/backend-error.js';
import { serveCommands } from '../backends/serve-commands.js';
import type { ServiceCommand, ServiceMessage, ServiceWorkerData, ThrownText } from './service-messages.js';
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
        post({ type: 'thrown', error: textOfThrown(thrown) });
      }
    },
    tearDown: () => {},
  });
}

async function construct(module: string, initArguments: unknown): Promise<VectorTransformer> {
  const { default: Transformer } = (await import(module)) as {
    default?: new (initArguments: unknown) => VectorTransformer;
  };
  if (typeof Transformer !== 'function') {
    throw new BackendError(`${module} has no class as its default export.`);
  }
  const transformer = new Transformer(initArguments);
  if (typeof transformer.transform !== 'function') {
    throw new BackendError(`The class ${Transformer.name} of ${module} has no method 'transform'.`);
  }
  return transformer;
}

async function transformed(transformer: VectorTransformer, batch: unknown): Promise<unknown> {
  const pre = transformer.preprocess ? await transformer.preprocess(batch) : batch;
  const trans = await transformer.transform(pre);
  return transformer.postprocess ? transformer.postprocess(pre, trans) : trans;
}

function textOfThrown(thrown: unknown): ThrownText {
  if (!(thrown instanceof Error)) return { name: 'Error', message: messageOf(thrown), stack: undefined };
  return { name: String(thrown.name), message: messageOf(thrown), stack: String(thrown.stack) };
}
