import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import type { FromWorker, ToWorker, WorkerConfig } from './frames.js';

/** Command in front of a worker process: `taskset -c 2,3`. */
export type Launcher = readonly string[];

/** A worker process and its two-way channel of frames. */
export class WorkerProcess {
  readonly #child: ChildProcess;
  /** Rejects when the process ends without having been asked to. */
  readonly failed: Promise<never>;
  #isClosing = false;
  onFrame: (frame: FromWorker) => void = () => {};

  constructor(config: WorkerConfig, launcher: Launcher) {
    const [command, ...args] = launcher;
    this.#child = fork(new URL('./loadgen-worker.js', import.meta.url), {
      // This mode sends typed arrays as they are.
      serialization: 'advanced',
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
      ...(command === undefined
        ? { execArgv: nodeOptions() }
        : { execPath: command, execArgv: [...args, process.execPath, ...nodeOptions()] }),
    });
    this.#child.on('message', (frame: FromWorker) => this.onFrame(frame));
    this.failed = once(this.#child, 'exit').then(([code, signal]) => {
      if (this.#isClosing) return new Promise<never>(() => {});
      throw new Error(`A worker process of the load generator ended with ${signal ?? `code ${code}`}.`);
    });
    this.failed.catch(() => {});
    this.#child.send(config);
  }

  get pid(): number {
    return this.#child.pid!;
  }

  send(frame: ToWorker): void {
    this.#child.send(frame);
  }

  async close(): Promise<void> {
    this.#isClosing = true;
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const exited = once(this.#child, 'exit');
    if (this.#child.connected) this.#child.send({ type: 'exit' } satisfies ToWorker);
    else this.#child.kill('SIGKILL');
    await exited;
  }
}

/**
 * Options that this process was started with, without a program in them (node -e ...), which would run again and start
 * workers itself.
 */
function nodeOptions(): string[] {
  // Only --input-type reveals a program read from standard input, and it is refused with a file.
  const isProgram = process.execArgv.some((option) =>
    /^(-[ep]+|--eval|--print|--input-type)(=|$)/.test(option),
  );
  return isProgram ? [] : process.execArgv;
}
