// An executor in a worker thread: answers with the logits of one batch; on any message it computes until terminated.
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { parentPort, workerData } from 'node:worker_threads';

const root = fileURLToPath(new URL('../../../..', import.meta.url));
const addon = createRequire(import.meta.url)('node-gyp-build')(root);
const executor = addon.createExecutor(workerData.options);
parentPort.postMessage(executor.forward(workerData.batch).slice());
parentPort.once('message', () => {
  for (;;) executor.forward(workerData.batch);
});
