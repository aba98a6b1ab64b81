import { performance } from 'node:perf_hooks';
import { workerData } from 'node:worker_threads';
import type { TowerInfo, TowerPicture } from '../../callbacks/tower-messages.js';
import type { WorkerWires } from '../../callbacks/worker-data.js';
import { answerBatches } from '../worker/answer-batches.js';
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

async function main({ enginePath, params, ...wires }: TowerWorkerData & WorkerWires) {
  const startMs = performance.now();
  const tower = await loadTower(enginePath, params, new Int32Array(wires.heartbeat));
  const { see: _, close, ...facts } = tower;
  answerBatches<TowerPicture, TowerInfo>(wires, {
    info: { ...facts, loadMs: performance.now() - startMs },
    compute: (pictures) => seeBatch(tower, pictures),
    close,
  });
}
