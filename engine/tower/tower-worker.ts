import { performance } from 'node:perf_hooks';
import { workerData } from 'node:worker_threads';
import type { ItemsAnswer } from '../../callbacks/items-messages.js';
import type { TowerInfo, TowerPicture } from '../../callbacks/tower-messages.js';
import type { WorkerWires } from '../../callbacks/worker-data.js';
import { pictureRows } from '../../models/towers/picture-places.js';
import { answerBatches } from '../worker/answer-batches.js';
import { answerItems } from '../worker/answer-items.js';
import { runWorker } from '../worker/run-worker.js';
import { type LoadedTower, loadTower, type TowerParams } from './load-tower.js';

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

type Tower = Pick<LoadedTower, 'see' | 'config' | 'rowWidth'>;

/** Computes the rows of a batch; see answerItems. */
function seeBatch(tower: Tower, pictures: readonly TowerPicture[]): ItemsAnswer {
  const sizes = pictures.map(({ grid }) => pictureRows(tower.config, grid) * tower.rowWidth);
  const compute = (some: readonly TowerPicture[], places: readonly Float32Array[]) => {
    const rows = tower.see(some);
    let end = 0;
    for (const place of places) {
      place.set(rows.subarray(end, end + place.length));
      end += place.length;
    }
  };
  return answerItems(pictures, sizes, compute, 'picture');
}
