import type { MessagePort } from 'node:worker_threads';

/** A worker's connections to its host, added to the data that its script gets. */
export interface WorkerWires {
  port: MessagePort;
  doorbell: SharedArrayBuffer;
  heartbeat: SharedArrayBuffer;
}
