// Begins steps until it is terminated, or begins one and never finishes it.
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { parentPort, workerData } from 'node:worker_threads';

const root = fileURLToPath(new URL('../../../..', import.meta.url));
const addon = createRequire(import.meta.url)('node-gyp-build')(root);
const { options, batch, sampling, output, finishes } = workerData;
const executor = addon.createExecutor(options);
executor.begin(batch, sampling, output);
parentPort.postMessage('begun');
if (finishes) {
  for (;;) {
    executor.finish();
    executor.begin(batch, sampling, output);
  }
}
parentPort.once('message', () => {});
