// A worker that runs no engine: it sends back what it is sent, and does what messages ask by name.
import { receiveMessageOnPort, workerData } from 'node:worker_threads';
import { Heartbeat } from '../../../dist/callbacks/heartbeat.js';
import { Doorbell } from '../../../dist/callbacks/worker-messages.js';
import { runWorker } from '../../../dist/engine/worker/run-worker.js';

const { port, given } = workerData;
const doorbell = new Doorbell(workerData.doorbell);
const heartbeat = new Heartbeat(workerData.heartbeat);

const TOLD = {
  exit: ({ code }) => process.exit(code),
  throw: ({ message, name, code }) => {
    throw Object.assign(new Error(message), { name, code });
  },
  /** As the workers of engines do. */
  fail: ({ message, name, code }) =>
    runWorker(workerData, () => {
      throw Object.assign(new Error(message), { name, code });
    }),
  hang: () => {
    for (;;) given?.length;
  },
  /** Numbered messages, one a millisecond, and no end of them. */
  flood: ({ length }) => {
    for (let number = 0; ; number++) {
      port.postMessage({ type: 'piece', number, data: new Int32Array(length).fill(number) });
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1);
    }
  },
  variable: ({ name }) => port.postMessage({ type: 'variable', value: process.env[name] }),
};

port.postMessage({ type: 'ready', info: given });
for (let isOpen = true; isOpen; ) {
  heartbeat.beat();
  const bell = doorbell.read();
  const message = receiveMessageOnPort(port)?.message;
  if (message === undefined) {
    heartbeat.sleep();
    doorbell.wait(bell, Number.POSITIVE_INFINITY);
  } else if (message.type === 'shutdown') isOpen = false;
  else if (Object.hasOwn(TOLD, message.type)) await TOLD[message.type](message);
  else port.postMessage(message);
}
port.postMessage({ type: 'closed' });
port.close();
