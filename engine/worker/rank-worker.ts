import { type MessagePort, receiveMessageOnPort, workerData } from 'node:worker_threads';
import { Heartbeat } from '../../callbacks/heartbeat.js';
import type { FollowerData } from '../../callbacks/ranks-options.js';
import type { WorkerWires } from '../../callbacks/worker-data.js';
import type { WorkerLife } from '../../callbacks/worker-messages.js';
import { loadableEngine, openEngine } from '../building/engine.js';
import { Follower } from '../ranks/follower.js';
import { openSeat } from '../ranks/seat.js';
import { runWorker } from './run-worker.js';

/** What a rank reports once it has its part of the model. */
export interface RankInfo {
  rank: number;
}

const data = workerData as FollowerData & WorkerWires;
await runWorker(data, () => main(data));

/** Follows rank 0 until that ends the group, or the host this rank. */
function main({ enginePath, seat, threads, port, heartbeat: beats }: FollowerData & WorkerWires): void {
  const follower = new Follower(loadableEngine(openEngine(enginePath)), openSeat(seat), threads);
  const heartbeat = new Heartbeat(beats);
  const post = (message: WorkerLife<RankInfo>) => port.postMessage(message);
  let isTold = false;
  while (!follower.hasEnded && !isAskedToEnd(port)) {
    heartbeat.beat();
    follower.turn();
    if (!follower.isOpen || isTold) continue;
    isTold = true;
    post({ type: 'ready', info: { rank: seat.rank } });
  }
  follower.close();
  post({ type: 'closed' });
  port.close();
}

function isAskedToEnd(port: MessagePort): boolean {
  const received = receiveMessageOnPort(port)?.message as { type?: unknown } | undefined;
  return received?.type === 'shutdown';
}
