import { performance } from 'node:perf_hooks';
import { receiveMessageOnPort, workerData } from 'node:worker_threads';
import { Heartbeat } from '../../callbacks/heartbeat.js';
import type { TowerAnswer, TowerCommand, TowerInfo } from '../../callbacks/tower-messages.js';
import type { WorkerWires } from '../../callbacks/worker-data.js';
import { Doorbell, type WorkerLife } from '../../callbacks/worker-messages.js';
import { runWorker } from '../worker/run-worker.js';
import { loadTower, type TowerParams } from './load-tower.js';
import { seeBatch } from './see-batch.js';

/** Data that the host gives to a tower's worker. */
export interface TowerWorkerData {
  enginePath: string;
  params: TowerParams;
}

const data = workerData as TowerWorkerData & WorkerWires;
await runWorker(data, () => main(data));

/** Loads the tower and answers batches until it is told to end; sleeps at the doorbell while there are none. */
async function main({ enginePath, params, port, ...wires }: TowerWorkerData & WorkerWires) {
  const startMs = performance.now();
  const tower = await loadTower(enginePath, params, new Int32Array(wires.heartbeat));
  const { see: _, close, ...facts } = tower;
  const info: TowerInfo = { ...facts, loadMs: performance.now() - startMs };
  port.postMessage({ type: 'ready', info } satisfies WorkerLife<TowerInfo>);
  const doorbell = new Doorbell(wires.doorbell);
  const heartbeat = new Heartbeat(wires.heartbeat);
  for (;;) {
    heartbeat.beat();
    const bell = doorbell.read();
    const command = receiveMessageOnPort(port)?.message as TowerCommand | undefined;
    if (command === undefined) {
      heartbeat.sleep();
      doorbell.wait(bell, Number.POSITIVE_INFINITY);
      continue;
    }
    if (command.type === 'shutdown') break;
    const answer: TowerAnswer = seeBatch(tower, command.pictures);
    port.postMessage(answer, [answer.rows.buffer as ArrayBuffer]);
  }
  close();
  port.postMessage({ type: 'closed' } satisfies WorkerLife<TowerInfo>);
  port.close();
}
