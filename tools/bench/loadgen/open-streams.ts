import { readFileSync } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';
import { runningProcesses } from '../../support/running-processes.js';
import { allCompleted, optionsFor, runBenchmark, withServer } from './server.js';

const STREAMS = 10_000;
const ESTABLISHED = '01';

/** Opens 10,000 streams in one worker, looked at from outside: the kernel's table of connections, the worker's memory. */
export async function openStreams(): Promise<string[]> {
  return await withServer({ tokens: 20, hold: STREAMS }, async (server) => {
    let told = '';
    server.process.stdout!.on('data', (text: string) => {
      told += text;
    });
    const options = optionsFor(server, {
      arrivals: { kind: 'concurrency', concurrency: STREAMS },
      requests: STREAMS,
      maxInFlight: STREAMS,
      warmup: 0,
    });
    const running = runBenchmark(options).then(allCompleted);
    let idle = 0;
    let seen: { connections: number; memory: number } | null = null;
    const over = running.then(() => true);
    while (!(await Promise.race([over, wait(50, false)]))) {
      const worker = workerOf(process.pid);
      if (worker === null) continue;
      if (idle === 0) idle = memoryOf(worker);
      if (told.includes(`open: ${STREAMS}`) && seen === null) {
        seen = { connections: connectionsTo(server.port), memory: memoryOf(worker) };
      }
    }
    const run = await running;
    if (seen === null) throw new Error(`The server never had ${STREAMS} streams open: ${told}`);
    const text =
      `${STREAMS} streams open at once in one worker: the server counted ${STREAMS}, the kernel's table ${seen.connections} ` +
      `established connections; ${run.requests.outcomes.completed} of ${run.requests.total} completed, every one counted once; ` +
      `the worker's memory grew from ${(idle / 2 ** 20).toFixed(0)} to ${(seen.memory / 2 ** 20).toFixed(0)} MiB, ` +
      `${((seen.memory - idle) / STREAMS / 1024).toFixed(1)} KiB a stream.`;
    return [text];
  });
}

/** The worker process that this process has started. */
function workerOf(parent: number): number | null {
  const isWorker = (args: readonly string[]) => args.some((arg) => arg.includes('loadgen-worker'));
  return runningProcesses().find((one) => one.parent === parent && isWorker(one.args))?.pid ?? null;
}

function memoryOf(pid: number): number {
  return 1024 * Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]);
}

function connectionsTo(port: number): number {
  const remote = `:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  return readFileSync('/proc/net/tcp', 'utf8')
    .split('\n')
    .map((line) => line.trim().split(/\s+/))
    .filter((cells) => cells[2]?.endsWith(remote) === true && cells[3] === ESTABLISHED).length;
}
