// Entry of a worker process. The first message is its configuration; then frames come.
import type { FromWorker, ToWorker, WorkerConfig } from './frames.js';
import { HealthProbe } from './health.js';
import { LoadWorker } from './load-worker.js';

const HEALTH_MS = 1000;

let worker: LoadWorker | null = null;
let probe: HealthProbe | null = null;

if (process.send === undefined) throw new Error('loadgen-worker is the entry of a worker process.');
const send = (frame: FromWorker) => {
  if (process.connected) process.send!(frame);
};

process.on('message', (message: WorkerConfig | ToWorker) => {
  if (!('type' in message)) start(message);
  else if (message.type === 'exit') exit();
  else {
    // A run's health covers the time from its beginning to its end, however short that is.
    if (message.type === 'begin') probe!.read(0);
    if (message.type === 'flush') tellHealth();
    worker!.receive(message);
  }
});
// The starting process is gone; or it got an interrupt, and instructs its workers itself.
process.on('disconnect', exit);
process.on('SIGINT', () => {});

function start(config: WorkerConfig): void {
  worker = new LoadWorker(config, send);
  probe = new HealthProbe();
  setInterval(tellHealth, HEALTH_MS);
  void worker.prepare();
}

function tellHealth(): void {
  send({ type: 'health', health: probe!.read(worker!.connectionsOpened) });
}

function exit(): void {
  worker?.close();
  process.exit();
}
