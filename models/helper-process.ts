import { type ChildProcess, fork } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { HelperThread } from './helper-pool.js';

/**
 * Variables that a helper process keeps: where programs and libraries lie. Keys, proxies and options of Node.js stay outside.
 */
const VARIABLES = ['PATH', 'SystemRoot', 'TEMP', 'TMPDIR', 'LD_LIBRARY_PATH', 'DYLD_LIBRARY_PATH'];

/**
 * Starts a process of Node.js for a HelperPool, with a module that answers jobs (answerJobs). It reads and writes nothing but its jobs, and
 * ends with its parent.
 */
export function startHelperProcess(script: URL): HelperThread {
  const env = Object.fromEntries(
    VARIABLES.flatMap((name) => (process.env[name] === undefined ? [] : [[name, process.env[name]]])),
  );
  const child = fork(fileURLToPath(script), [], {
    env,
    execArgv: [],
    serialization: 'advanced',
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
  });
  return new HelperProcess(child) as unknown as HelperThread;
}

/** A child process with what a pool calls of a thread. */
class HelperProcess extends EventEmitter {
  readonly #child: ChildProcess;

  constructor(child: ChildProcess) {
    super();
    this.#child = child;
    child.on('message', (message) => this.emit('message', message));
    child.on('error', (error) => this.emit('error', error));
    child.on('exit', (code, signal) => this.emit('exit', signal ?? code));
  }

  postMessage(job: unknown): void {
    // A job that cannot be sent is lost with its process, whose end is reported.
    this.#child.send(job as object, () => undefined);
  }

  ref(): void {
    this.#child.ref();
    this.#child.channel?.ref();
  }

  unref(): void {
    this.#child.unref();
    this.#child.channel?.unref();
  }

  async terminate(): Promise<void> {
    const child = this.#child;
    if (child.exitCode !== null || child.signalCode !== null) return;
    // While a caller waits for the process to end, the process keeps this one alive.
    child.ref();
    const ended = once(child, 'exit');
    child.kill('SIGKILL');
    await ended;
  }
}
