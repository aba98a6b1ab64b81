// A setup file of Vitest: ends the process of the tests if a file takes more processor time than SKEIN_TEST_MUTANT_LIMITS allows
// it, or ten times as much of the clock. It has a thread of its own, since a loop of a mutant may never give way.
import { Worker } from 'node:worker_threads';
import { expect } from 'vitest';

const WATCH = `
const { parentPort } = require('node:worker_threads');
let limit = Infinity, cpu = 0, begun = 0;
const cpuMs = () => { const { user, system } = process.cpuUsage(); return (user + system) / 1000; };
parentPort.on('message', (ms) => { limit = ms; cpu = cpuMs(); begun = performance.now(); });
setInterval(() => {
  if (cpuMs() - cpu > limit || performance.now() - begun > 10 * limit) process.kill(process.pid, 'SIGKILL');
}, 100);
`;

const limits = JSON.parse(process.env.SKEIN_TEST_MUTANT_LIMITS ?? '{}');
if (globalThis.skeinWatchdog === undefined) {
  globalThis.skeinWatchdog = new Worker(WATCH, { eval: true });
  globalThis.skeinWatchdog.unref();
}
const limit = limits[expect.getState().testPath];
if (limit !== undefined) globalThis.skeinWatchdog.postMessage(limit);
