import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

/** Processes that take all the processor time that they get; they end with this process, however it ends. */
export class BusyLoops {
  readonly #processes: readonly ChildProcess[];

  constructor(count: number) {
    const path = fileURLToPath(new URL('busy-loop.mjs', import.meta.url));
    this.#processes = Array.from({ length: count }, () => fork(path, { execArgv: [] }));
  }

  async stop(): Promise<void> {
    const running = this.#processes.filter(
      ({ exitCode, signalCode }) => exitCode === null && signalCode === null,
    );
    const ended = running.map((one) => once(one, 'exit'));
    for (const one of running) one.kill('SIGKILL');
    await Promise.all(ended);
  }
}
