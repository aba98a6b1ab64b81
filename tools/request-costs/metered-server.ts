import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { addressOf } from '../listening-server.js';

/** Measurements by the threads of the server since the last reset: see meter.mjs. */
export interface Noted {
  /** Processor time of the main thread so far. */
  mainNs: number;
  /** Longest processor time for which the main thread did nothing else. */
  holdNs: number;
  /** Longest processor time of the engine's thread between two iterations' messages. */
  iterationNs: number;
  /** Since the start. */
  iterations: number;
}

/** A `skein serve` whose processor time and memory are measured from outside. */
export class MeteredServer {
  readonly url: string;
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess, url: string) {
    this.#child = child;
    this.url = url;
  }

  /** @param args of `skein serve`. @param environment of the process. */
  static async start(args: readonly string[], environment: NodeJS.ProcessEnv): Promise<MeteredServer> {
    const path = (name: string) => fileURLToPath(new URL(name, import.meta.url));
    const meter = new URL('meter.mjs', import.meta.url).href;
    const command = ['--import', meter, path('../../dist/bin/skein.js'), 'serve', '--port', '0', ...args];
    const child = spawn(process.execPath, command, {
      env: environment,
      stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
    });
    const url = await addressOf(child);
    child.stdout!.resume();
    return new MeteredServer(child, url);
  }

  get pid(): number {
    return this.#child.pid!;
  }

  /** @param reset starts over. */
  async noted(reset = false): Promise<Noted> {
    const answer = once(this.#child, 'message') as Promise<[Noted]>;
    this.#child.send(reset ? 'reset' : 'read');
    return (await answer)[0];
  }

  /** Bytes of resident memory now. */
  residentBytes(): number {
    return this.#status('VmRSS');
  }

  /** Starts again to note how much memory is resident at most. */
  resetPeak(): void {
    writeFileSync(`/proc/${this.#child.pid}/clear_refs`, '5');
  }

  /** Most bytes of resident memory since `resetPeak`. */
  peakBytes(): number {
    return this.#status('VmHWM');
  }

  async stop(): Promise<void> {
    const ended = once(this.#child, 'close');
    this.#child.kill('SIGTERM');
    await ended;
  }

  #status(field: string): number {
    const status = readFileSync(`/proc/${this.#child.pid}/status`, 'utf8');
    return 1024 * Number(new RegExp(`^${field}:\\s+(\\d+) kB$`, 'm').exec(status)![1]);
  }
}
