import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';

const SECONDS = 0.4;
/** Iterations of a call: some milliseconds. */
const ITERATIONS = 200_000;

/** Plain JavaScript, since a worker thread compiles no TypeScript. */
const LOOP = `
  const { parentPort, workerData } = require('node:worker_threads');
  const { root, isa, dtype, seconds, iterations } = workerData;
  const kernels = require(require.resolve('node-gyp-build', { paths: [root] }))(root).kernels;
  kernels.peak(isa, { dtype, iterations });
  const begin = performance.now();
  let operations = 0;
  while (performance.now() - begin < seconds * 1000) operations += kernels.peak(isa, { dtype, iterations });
  parentPort.postMessage(operations / (performance.now() - begin) / 1e6);
`;

/**
 * GOP/s of all threads together in a loop of the format's own instructions that uses registers alone. They run at once: a processor's
 * clock is lower where more of its cores compute.
 */
export async function peakOfThreads(isa: string, dtype: string, threads: number): Promise<number> {
  const root = fileURLToPath(new URL('../../../', import.meta.url));
  const workerData = { root, isa, dtype, seconds: SECONDS, iterations: ITERATIONS };
  const workers = Array.from({ length: threads }, () => new Worker(LOOP, { eval: true, workerData }));
  const rates = await Promise.all(workers.map((worker) => once(worker, 'message') as Promise<[number]>));
  return rates.reduce((sum, [rate]) => sum + rate, 0);
}
