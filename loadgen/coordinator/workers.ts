import type { BackendOptions } from '../backends/backend.js';
import type { FullBenchOptions } from '../options.js';
import { type Launcher, WorkerProcess } from '../worker/worker-process.js';
import type { Target } from './target.js';

/** Connections opened ahead where the arrivals do not show how many are needed. */
const WARM = 32;

/** Number of slots or connections at the greatest load of the options. */
function mostConnections({ arrivals, sweep, requests }: FullBenchOptions): number {
  const counts = [
    arrivals.kind === 'concurrency' ? arrivals.concurrency : WARM,
    arrivals.kind === 'max' ? (requests ?? WARM) : 0,
    ...(sweep?.over === 'concurrency' ? sweep.points : []),
  ];
  return Math.max(...counts);
}

/** Starts the worker processes, each with its launcher, and waits until their connections are open. */
export async function startWorkers(
  options: FullBenchOptions,
  { origin, headers, tls }: Target,
  backend: BackendOptions,
  launchers: readonly Launcher[],
): Promise<WorkerProcess[]> {
  const { timeout, stall, retries, busyWait, keepAlive, maxInFlight } = options;
  const share = (total: number) => Math.ceil(total / launchers.length);
  const connections = Math.min(options.connections ?? mostConnections(options), maxInFlight);
  const workers = launchers.map(
    (launcher, worker) =>
      new WorkerProcess(
        {
          worker,
          origin,
          backend,
          headers,
          tls,
          connections: share(connections),
          maxInFlight: share(maxInFlight),
          keepAlive,
          timeoutMs: timeout * 1000,
          stallMs: stall * 1000,
          retries,
          busyWait,
        },
        launcher,
      ),
  );
  try {
    await Promise.all(workers.map(ready));
  } catch (error) {
    await Promise.all(workers.map((worker) => worker.close()));
    throw error;
  }
  return workers;
}

function ready(worker: WorkerProcess): Promise<void> {
  const opened = new Promise<void>((resolve) => {
    worker.onFrame = ({ type }) => {
      if (type === 'ready') resolve();
    };
  });
  return Promise.race([opened, worker.failed]);
}
