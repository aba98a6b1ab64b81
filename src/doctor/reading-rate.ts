import { Worker } from 'node:worker_threads';

/** Bytes that each thread reads in one pass, where there is room: more than its share of any cache but the largest. */
const MAX_BYTES = 128 << 20;
/** How long threads read, in milliseconds. */
const TIME_MS = 400;

/**
 * What a thread runs: passes over its own memory by memchr, which is vectors and nothing else. All begin together, once each has touched
 * its pages.
 */
const READER = `
const { parentPort, workerData: { bytes, timeMs } } = require('node:worker_threads');
const memory = Buffer.alloc(bytes, 1);
parentPort.once('message', () => {
  const begin = performance.now();
  let passes = 0;
  while (performance.now() - begin < timeMs) {
    memory.indexOf(2);
    passes++;
  }
  parentPort.postMessage(passes * bytes / (performance.now() - begin) * 1000);
});
parentPort.postMessage(0);
`;

/**
 * Returns the bytes per second that `threads` threads read from memory at once. Takes about half a second.
 * @param room bytes of memory that each of them may take
 */
export async function readingRate(threads: number, room = MAX_BYTES): Promise<number> {
  const bytes = Math.min(room, MAX_BYTES);
  const workers = Array.from(
    { length: threads },
    () => new Worker(READER, { eval: true, workerData: { bytes, timeMs: TIME_MS } }),
  );
  try {
    await Promise.all(workers.map(answerOf));
    const rates = workers.map(answerOf);
    for (const worker of workers) worker.postMessage('read');
    return (await Promise.all(rates)).reduce((sum, rate) => sum + rate, 0);
  } finally {
    await Promise.all(workers.map((worker) => worker.terminate()));
  }
}

function answerOf(worker: Worker): Promise<number> {
  return new Promise((resolve, reject) => {
    worker.once('message', resolve);
    worker.once('error', reject);
  });
}
