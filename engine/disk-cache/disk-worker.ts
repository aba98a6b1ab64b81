import { workerData } from 'node:worker_threads';
import { BlockFolder } from './block-folder.js';
import { DiskDesk } from './disk-desk.js';
import type { DiskAsk, DiskReply, DiskWorkerData } from './disk-messages.js';

const { port, replies, doorbell, path, maxBytes, format } = workerData as DiskWorkerData;
const numReplies = new Int32Array(replies);
const bell = new Int32Array(doorbell);

const folder: BlockFolder = new BlockFolder({
  ...format,
  path,
  maxBytes,
  onProblem: (message) => reply({ type: 'problem', message }),
});
const desk = new DiskDesk({ folder, format, reply });
let isWriting = false;

port.on('message', (ask: DiskAsk) => {
  desk.ask(ask);
  if (ask.type === 'close') port.close();
  else if (ask.type === 'write') writeSoon();
});
desk.open();

/** Writes when the messages that have come are read: reads among them go first. */
function writeSoon(): void {
  if (isWriting) return;
  isWriting = true;
  setImmediate(() => {
    isWriting = false;
    if (desk.writeNext()) writeSoon();
  });
}

function reply(message: DiskReply): void {
  port.postMessage(message, message.type === 'read' ? [message.bytes.buffer] : []);
  for (const cell of [numReplies, bell]) {
    Atomics.add(cell, 0, 1);
    Atomics.notify(cell, 0);
  }
}
