// Loaded into a server with node --import, in each of its threads: notes the processor time of what cannot be
// interrupted, and reports it over the channel of the child process.
//
//   main thread     the longest time between two ticks of a timer: who waits for the server waits for that
//   engine thread   the longest time between two messages of an iteration: who waits for a token waits for that
//
// Processor time of the thread itself and not of the clock, so that a busy machine changes little.
import {
  getEnvironmentData,
  isMainThread,
  MessagePort,
  setEnvironmentData,
  workerData,
} from 'node:worker_threads';
import { threadClock } from '../support/thread-clock.mjs';

const NAME = 'skein-cost-meter';
const HOLD = 0;
const ITERATION = 1;
const ITERATIONS = 2;

if (isMainThread && process.send !== undefined) {
  const cells = new Float64Array(new SharedArrayBuffer(3 * 8));
  setEnvironmentData(NAME, cells.buffer);
  const clock = threadClock();
  let before = clock();
  const tick = () => {
    const now = clock();
    cells[HOLD] = Math.max(cells[HOLD], now - before);
    before = now;
  };
  setInterval(tick, 1).unref();
  process.on('message', (message) => {
    tick();
    const [holdNs, iterationNs, iterations] = cells;
    if (message === 'reset') cells.fill(0, HOLD, ITERATIONS);
    process.send({ mainNs: before, holdNs, iterationNs, iterations });
  });
  process.channel.unref();
} else if (workerData?.doorbell !== undefined && workerData.enginePath !== undefined) {
  const cells = new Float64Array(getEnvironmentData(NAME));
  const clock = threadClock();
  // Before its first iteration a thread loads its model, and there is no token to wait for.
  let before = Number.POSITIVE_INFINITY;
  const { postMessage } = MessagePort.prototype;
  MessagePort.prototype.postMessage = function (message, ...rest) {
    postMessage.call(this, message, ...rest);
    if (message?.type !== 'iteration') return;
    const now = clock();
    cells[ITERATION] = Math.max(cells[ITERATION], now - before);
    cells[ITERATIONS] += 1;
    before = now;
  };
}
