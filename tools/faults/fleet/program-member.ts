import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Member } from './fleet.js';
import type { SkewedClock } from './skewed-clock.js';
import type { Direction, Wire } from './wire.js';

/** Characters that are kept of what a program writes. */
const MAX_OUTPUT = 20_000;
/** A program that cannot start is started again, as a service manager does, for so long. */
const MAX_START_MS = 300_000;

/** How a program is started. */
export interface Start {
  command: string;
  args: readonly string[];
  environment: NodeJS.ProcessEnv;
  /** Where it is asked whether it is ready: 200 says so. */
  ready: string;
  onStarted?: () => void;
  /** It is about to end: no client shall ask it from now on. */
  onEnding?: () => void;
}

export interface ProgramOptions {
  name: string;
  role: Member['role'];
  /** Asked at each start, so that ports may be others. */
  start: () => Promise<Start>;
  wire?: Wire | null;
  /** Direction of the wire in which it speaks. */
  speaks?: Direction;
  clock?: SkewedClock | null;
  /** Removes what it stores. */
  erase?: () => void;
}

interface Running {
  child: ChildProcess;
  start: Start;
}

/** Those that must not outlive this process, stopped ones among them. */
const alive = new Set<ChildProcess>();
process.on('exit', () => {
  for (const child of alive) child.kill('SIGKILL');
});

const isAlive = ({ child }: Running) => child.exitCode === null && child.signalCode === null;

/** A member in a process of its own. */
export class ProgramMember implements Member {
  readonly name: string;
  readonly role: Member['role'];
  readonly wire: Wire | null;
  readonly clock: SkewedClock | null;
  readonly #options: ProgramOptions;
  #running: Running | null = null;
  #output = '';

  constructor(options: ProgramOptions) {
    this.#options = options;
    this.name = options.name;
    this.role = options.role;
    this.wire = options.wire ?? null;
    this.clock = options.clock ?? null;
  }

  get sentBytes(): number {
    return this.wire?.bytes[this.#options.speaks ?? 'up'] ?? 0;
  }

  /** The end of what it has written. */
  get output(): string {
    return this.#output;
  }

  signal(signal: NodeJS.Signals): void {
    this.#running?.child.kill(signal);
  }

  end(signal: 'SIGKILL' | 'SIGTERM'): Promise<void> {
    return endOf(this.#running, signal);
  }

  async start(): Promise<void> {
    const end = performance.now() + MAX_START_MS;
    while (!(await this.#startOnce(end))) {
      if (performance.now() > end)
        throw new Error(`${this.name} does not start: ${this.#output.slice(-2_000)}`);
      await sleep(200);
    }
    this.#running!.start.onStarted?.();
  }

  async succeed(): Promise<void> {
    const former = this.#running;
    try {
      await this.start();
    } finally {
      await endOf(former, 'SIGTERM');
    }
  }

  /** @returns false: it has ended, or time is over */
  async #startOnce(end: number): Promise<boolean> {
    const start = await this.#options.start();
    const child = spawn(start.command, start.args, {
      env: { ...start.environment, ...this.clock?.environment },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const running = { child, start };
    this.#running = running;
    alive.add(child);
    child.once('exit', () => alive.delete(child));
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => {
        this.#output = (this.#output + text).slice(-MAX_OUTPUT);
      });
    }
    while (isAlive(running) && performance.now() < end) {
      if (await isOk(start.ready)) return true;
      await sleep(30);
    }
    return false;
  }

  erase(): void {
    this.#options.erase?.();
  }
}

async function endOf(running: Running | null, signal: 'SIGKILL' | 'SIGTERM'): Promise<void> {
  if (running === null) return;
  running.start.onEnding?.();
  if (!isAlive(running)) return;
  const ended = once(running.child, 'exit');
  running.child.kill(signal);
  await ended;
}

/** Whether an address answers with 200 soon. */
export const isOk = (url: string): Promise<boolean> =>
  fetch(url, { signal: AbortSignal.timeout(2_000) }).then(
    async (response) => {
      await response.arrayBuffer();
      return response.ok;
    },
    () => false,
  );
