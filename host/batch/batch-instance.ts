import { EngineFailure } from '../engine-failure.js';
import { type SupervisorOptions, WorkerSupervisor } from '../worker-supervisor.js';

type Supervision<Info, Message extends { type: string }, Command> = Pick<
  SupervisorOptions<Info, Message, Command>,
  'link' | 'restart' | 'watchdogTimeoutMs' | 'terminateTimeoutMs'
>;

/** What an instance does: `starting` also while its worker is started anew, `dead` where there will be none any more. */
export type InstanceState = 'starting' | 'idle' | 'busy' | 'dead';

export interface InstanceEvents<Batch, Info, Message> {
  onReady(info: Info): void;
  /** @param oldest the oldest of its batches, which messages are about; null: it has none */
  onMessage(message: Message, oldest: Batch | null): void;
  /**
   * The worker is lost. `begun`: the batch that it was at; `others`: those that waited for it, of which nothing was done.
   * Either onReady or onEnded follows.
   */
  onLost(error: Error, begun: Batch | null, others: Batch[]): void;
  /** There will be no worker any more. */
  onEnded(error: Error | null): void;
}

export interface InstanceOptions<Batch, Info, Message extends { type: string }, Command>
  extends Supervision<Info, Message, Command> {
  /** What a sentence calls it, at its beginning. */
  name: string;
  /** Batches that it may have. */
  batchesAhead: number;
  /** Milliseconds that one batch may take from the moment when it is the instance's turn; 0: any time. */
  timeLimitMs: number;
  events: InstanceEvents<Batch, Info, Message>;
}

/**
 * One worker of a batch host with the batches that it has, which it runs one after the other:
 *
 *   posted   [ oldest: it computes | next: waits in its port ]      at most batchesAhead
 *
 * One that takes too long over a batch is ended and started anew.
 */
export class BatchInstance<Batch, Info, Message extends { type: string }, Command> {
  readonly #options: InstanceOptions<Batch, Info, Message, Command>;
  readonly #supervisor: WorkerSupervisor<Info, Message, Command>;
  #posted: Batch[] = [];
  #info: Info | null = null;
  #isRunning = false;
  /** How many times it was held. */
  #numHeld = 0;
  #hasEnded = false;
  #timer: NodeJS.Timeout | null = null;
  /** Since when the oldest batch has been the oldest, on performance.now's clock. */
  #oldestSinceMs = 0;

  constructor(options: InstanceOptions<Batch, Info, Message, Command>) {
    this.#options = options;
    const { events } = options;
    this.#supervisor = new WorkerSupervisor<Info, Message, Command>({
      ...options,
      isAwaited: () => this.#posted.length > 0,
      onReady: (_, info) => {
        this.#info = info;
        this.#isRunning = true;
        events.onReady(info);
      },
      onMessage: (message) => {
        if (message.type !== 'closed') events.onMessage(message as Message, this.#posted[0] ?? null);
      },
      onLost: (error) => this.#lose(error),
      onEnded: (error) => {
        this.#isRunning = false;
        this.#hasEnded = true;
        this.#stopTimer();
        events.onEnded(error);
      },
    });
  }

  /** Of the latest worker that was loaded; null: none has been. */
  get info(): Info | null {
    return this.#info;
  }

  get isRunning(): boolean {
    return this.#isRunning;
  }

  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  get state(): InstanceState {
    if (this.#hasEnded) return 'dead';
    if (!this.#isRunning) return 'starting';
    return this.#posted.length > 0 ? 'busy' : 'idle';
  }

  get restarts(): number {
    return this.#supervisor.restarts;
  }

  get pid(): number | null {
    return this.#supervisor.pid;
  }

  get numPosted(): number {
    return this.#posted.length;
  }

  /** It may have another batch. */
  get isFree(): boolean {
    return this.#isRunning && this.#numHeld === 0 && this.#posted.length < this.#options.batchesAhead;
  }

  /**
   * It waits for something that another batch may have to be run for, and gets none behind the one that it has, until the function that is
   * returned is called.
   */
  hold(): () => void {
    const { restarts } = this;
    this.#numHeld++;
    return () => {
      if (restarts === this.restarts && this.#isRunning) this.#numHeld--;
    };
  }

  /** Gives it a batch as a command. False where there is no worker now; throws where the command cannot be copied to it. */
  post(batch: Batch, command: Command, transfer: readonly ArrayBuffer[]): boolean {
    if (!this.#supervisor.post(command, transfer)) return false;
    this.#posted.push(batch);
    if (this.#posted.length === 1) this.#beginOldest();
    return true;
  }

  /** Sends a command that is no batch. False where there is no worker now. */
  send(command: Command, transfer: readonly ArrayBuffer[] = []): boolean {
    return this.#supervisor.post(command, transfer);
  }

  /** The oldest batch is done. */
  endOldest(): Batch | null {
    const batch = this.#posted.shift() ?? null;
    if (this.#posted.length > 0) this.#beginOldest();
    return batch;
  }

  shutdown(): void {
    this.#supervisor.shutdown();
  }

  terminate(reason: string): void {
    this.#supervisor.terminate(reason);
  }

  #beginOldest(): void {
    const { timeLimitMs } = this.#options;
    if (timeLimitMs === 0) return;
    this.#oldestSinceMs = performance.now();
    this.#timer ??= setTimeout(() => this.#checkTime(), timeLimitMs);
  }

  /** The timer stands for whatever batch was the oldest when it was set: it is set again for the present one. */
  #checkTime(): void {
    this.#timer = null;
    if (this.#posted.length === 0) return;
    const { timeLimitMs, name } = this.#options;
    const leftMs = this.#oldestSinceMs + timeLimitMs - performance.now();
    if (leftMs > 0) {
      this.#timer = setTimeout(() => this.#checkTime(), Math.ceil(leftMs));
      return;
    }
    const message = `${name} took longer over a batch than the ${timeLimitMs} ms that it may, and is started anew.`;
    this.#supervisor.replace(new EngineFailure(message));
  }

  #lose(error: Error): void {
    this.#isRunning = false;
    this.#numHeld = 0;
    this.#stopTimer();
    const [begun = null, ...others] = this.#posted;
    this.#posted = [];
    this.#options.events.onLost(error, begun, others);
  }

  #stopTimer(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
  }
}
