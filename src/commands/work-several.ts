import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { messageOf } from '../../base/error-text.js';
import { skeinVersion } from '../../base/package-info.js';
import { type LoadingNotice, packLoading } from '../../cluster/nats/loading-notice.js';
import { availableMemory } from '../../kvcache/available-memory.js';
import { UsageError } from '../errors/user-errors.js';
import { keepAliveMs } from '../options/keep-alive.js';
import { type OpenQueue, openQueue } from '../queue/open-nats.js';
import { environmentOf, type PartReport } from '../queue/work-part.js';
import { workerId } from '../queue/worker-beat.js';
import { followConnection, type HealthReport } from '../queue/worker-life.js';
import { tellTerminal } from '../server/logs/log-output.js';
import type { ServerLog } from '../server/web/server-log.js';
import { findEnginesAside } from '../serving/on-demand/find-engines-aside.js';
import { Placement } from '../serving/on-demand/placement.js';
import { type MemoryShare, memoryShare } from '../serving/on-demand/residency.js';
import type { Config, ConfiguredModel } from '../settings/config.js';
import { loadingOptions } from './loading-options.js';
import { bytesOf } from './on-demand.js';
import { untilSignal } from './server-life.js';

/** Share of the free memory that the models have, where no option says how much. */
const SHARE_OF_FREE = 0.8;
/** Milliseconds between two words about what it could load, and two looks at what is due. */
const TELL_MS = 1_000;
/** Milliseconds after which a model that could not be measured, or has ended by itself, is tried again. */
const RETRY_MS = 10_000;

/** How a worker with several models is, for its health port. */
export class SeveralLife {
  readonly #models: string;
  #isLeaving = false;
  #isConnected = false;
  /** Requests of all its models. */
  requests = 0;

  constructor(models: readonly ConfiguredModel[]) {
    this.#models = models.map(({ name }) => name).join(', ');
  }

  follow({ nc }: OpenQueue): void {
    void followConnection(nc, (isConnected) => {
      this.#isConnected = isConnected;
    });
  }

  leave(): void {
    this.#isLeaving = true;
  }

  report(): HealthReport {
    const own = { model: this.#models, requests: this.requests };
    if (this.#isLeaving) return { status: 'draining', reason: 'the worker was told to end', ...own };
    return this.#isConnected
      ? { status: 'ready', ...own }
      : { status: 'disconnected', reason: 'the NATS server cannot be reached', ...own };
  }
}

/**
 * Works on several models within a bound of memory: each that is wanted has a process of its own, an ordinary
 * worker, which is ended where it has been idle for long, or another one needs its room.
 *
 *   gateway --wanted.MODEL--> this process (Placement) --fork--> skein work of that model --beats--> gateways
 *                                                      --SIGTERM-->  hands over, ends
 */
export async function workSeveral(config: Config, log: ServerLog, life: SeveralLife): Promise<void> {
  const { models } = config;
  if (config.disaggregationMode === 'prefill')
    throw new UsageError('A prefill worker (--disaggregation-mode prefill) has one model; give one --model.');
  const queue = await openQueue(config, 'skein work');
  try {
    life.follow(queue);
    const { nc, names } = queue;
    const tell = (notice: LoadingNotice) => {
      if (!nc.isClosed()) nc.publish(names.loading, packLoading(notice));
    };
    const parts = new WorkParts(config, { log, life, tell });
    for (const entry of models) {
      const callback = (error: Error | null) => {
        if (error === null) void parts.want(entry);
        else log.warn({}, `The worker does not hear what is wanted: ${messageOf(error)}`);
      };
      // One worker of all that could is enough.
      nc.subscribe(names.wanted(entry.name), { queue: 'workers', callback });
    }
    const timer = setInterval(() => {
      parts.tick();
      for (const { name } of models) parts.say(name);
    }, TELL_MS);
    for (const { name } of models) parts.say(name);
    process.stdout.write(
      `skein ${skeinVersion()} works on ${models.map(({ name }) => name).join(', ')} for the gateways of ${names.stream}, each when it is wanted\n` +
        `  within ${Math.floor(parts.memoryBytes / 1e6)} MB of memory\n`,
    );
    await untilSignal();
    clearInterval(timer);
    life.leave();
    tellTerminal('handing over the requests under way; a second signal ends at once');
    await parts.end();
  } finally {
    await queue.nc.close();
  }
}

/** What the processes of a worker with several models have around them. */
interface AroundParts {
  log: ServerLog;
  life: SeveralLife;
  tell: (notice: LoadingNotice) => void;
}

/** The processes of the models. */
class WorkParts {
  readonly memoryBytes: number;
  readonly #config: Config;
  readonly #around: AroundParts;
  readonly #placement: Placement;
  readonly #children = new Map<string, ChildProcess>();
  readonly #held = new Map<string, number>();
  /** What each takes; null: it could not be measured, or has ended by itself, a while ago. */
  readonly #shares = new Map<string, MemoryShare | null>();
  /** Names as workers of those that are being measured, which may mean that they are built first. */
  readonly #measuring = new Map<string, { worker: string; sinceMs: number }>();
  /** Name as a worker of what it has not loaded. */
  readonly #own = workerId();
  #isEnding = false;

  constructor(config: Config, around: AroundParts) {
    this.#config = config;
    this.#around = around;
    this.memoryBytes = config.modelMemoryBytes ?? Math.floor(SHARE_OF_FREE * availableMemory().bytes);
    this.#placement = new Placement({
      memoryBytes: this.memoryBytes,
      keepAliveMs: keepAliveMs(config.keepAlive)!,
      start: (name, share) => this.#start(name, share),
      stop: (name) => this.#children.get(name)?.kill('SIGTERM'),
    });
  }

  /** Informs gateways of a model that no process has. */
  say(model: string): void {
    const measuring = this.#measuring.get(model);
    const told = { model, fraction: null };
    if (measuring !== undefined) {
      const elapsedMs = Math.round(performance.now() - measuring.sinceMs);
      this.#around.tell({ ...told, worker: measuring.worker, phase: 'building', elapsedMs });
    } else if (!this.#placement.has(model) && this.#shares.get(model) !== null)
      this.#around.tell({ ...told, worker: this.#own, phase: 'able', elapsedMs: 0 });
  }

  tick(): void {
    this.#placement.tick(performance.now());
  }

  /** Requests wait for a model. Never rejects. */
  async want(entry: ConfiguredModel): Promise<void> {
    const { name } = entry;
    const known = this.#shares.get(name);
    if (known === null || this.#isEnding || this.#measuring.has(name)) return;
    const share = known ?? (await this.#measured(entry));
    if (share !== null && !this.#isEnding) this.#placement.want(name, share, performance.now());
  }

  async #measured(entry: ConfiguredModel): Promise<MemoryShare | null> {
    const { name } = entry;
    this.#measuring.set(name, { worker: workerId(), sinceMs: performance.now() });
    this.say(name);
    try {
      const options = loadingOptions(entry, this.#config);
      const engines = await findEnginesAside(options);
      const { needsOf } = await import('../serving/load-models.js');
      const { fixed, mostBytes } = await needsOf(options, engines);
      const share = memoryShare(bytesOf(fixed), mostBytes, this.memoryBytes);
      if (share === null)
        throw new Error(`it takes ${bytesOf(fixed)} bytes, and --model-memory-bytes is ${this.memoryBytes}`);
      this.#shares.set(name, share);
      return share;
    } catch (error) {
      this.#around.log.error({ model: name }, `The model ${name} cannot be loaded: ${messageOf(error)}`);
      this.#forgetLater(name);
      return null;
    } finally {
      this.#measuring.delete(name);
    }
  }

  /** It is measured again for a wish that comes later. */
  #forgetLater(name: string): void {
    this.#shares.set(name, null);
    setTimeout(() => this.#shares.delete(name), RETRY_MS).unref();
  }

  #start(name: string, { cacheBytes }: MemoryShare): void {
    const worker = workerId();
    // Before the process can say so itself, another worker could be asked for the model.
    this.#around.tell({ worker, model: name, phase: 'loading', fraction: null, elapsedMs: 0 });
    const child = fork(process.argv[1]!, process.argv.slice(2), {
      env: environmentOf({ worker, model: name, cacheBytes }),
      // Signals of the terminal come to this process, which instructs the others.
      detached: true,
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    });
    this.#children.set(name, child);
    child.on('message', ({ isReady, held }: PartReport) => {
      if (isReady) this.#placement.noteRunning(name, performance.now());
      this.#noteHeld(name, held);
      this.#placement.noteHeld(name, held, performance.now());
    });
    child.on('error', (error) =>
      this.#around.log.error({ err: error, model: name }, 'a process of a model failed'),
    );
    child.on('close', (code) => {
      this.#children.delete(name);
      this.#noteHeld(name, 0);
      if (code !== 0) {
        this.#around.log.error({ model: name, code }, 'a process of a model has ended');
        this.#forgetLater(name);
      }
      this.#placement.noteEnded(name, performance.now());
    });
  }

  #noteHeld(name: string, held: number): void {
    this.#held.set(name, held);
    this.#around.life.requests = [...this.#held.values()].reduce((sum, one) => sum + one, 0);
  }

  /** Lets all hand over what they have; a second signal ends them at once. */
  async end(): Promise<void> {
    this.#isEnding = true;
    const children = [...this.#children.values()];
    for (const child of children) child.kill('SIGTERM');
    const atOnce = () => {
      for (const child of children) child.kill('SIGKILL');
    };
    process.once('SIGTERM', atOnce);
    process.once('SIGINT', atOnce);
    await Promise.all(children.map((child) => (child.exitCode === null ? once(child, 'close') : null)));
  }
}
