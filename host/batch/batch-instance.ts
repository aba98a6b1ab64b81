import { messageOf } from '../../base/error-text.js';
import { BatchClaims, claimsMemory } from '../../callbacks/infer/batch-claims.js';
import { EngineFailure } from '../engine-failure.js';
import { type SupervisorOptions, WorkerSupervisor } from '../worker-supervisor.js';

type Supervision<Info, Message extends { type: string }, Command> = Pick<
  SupervisorOptions<Info, Message, Command>,
  'restart' | 'watchdogTimeoutMs' | 'terminateTimeoutMs' | 'startLimitMs'
>;
type Link<Info, Message extends { type: string }, Command> = SupervisorOptions<
  Info,
  Message,
  Command
>['link'];

/**
 * What an instance does: `starting` also while its worker is restarted, `dead` where there will be none any
 * more.
 */
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
  /** The batch is the oldest now: the worker begins with it as soon as it can. */
  onBegun(batch: Batch): void;
  /** These were taken back, in their order: the worker will not begin with them. */
  onRecalled(batches: Batch[]): void;
  /** There will be no worker any more. */
  onEnded(error: Error | null): void;
}

export interface InstanceOptions<Batch, Info, Message extends { type: string }, Command>
  extends Supervision<Info, Message, Command> {
  /** What a sentence calls it, at its beginning. */
  name: string;
  /** Batches that it may have. */
  batchesAhead: number;
  /**
   * Milliseconds that the oldest batch may take before those after it are taken back. One ahead is worth it
   * only where batches take less: then the worker never waits for this thread. null: batches stay where they
   * are.
   */
  recallAfterMs: number | null;
  /** @param claims memory of the worker's BatchClaims; null: nothing is taken back */
  link(
    links: Parameters<Link<Info, Message, Command>>[0],
    claims: SharedArrayBuffer | null,
  ): ReturnType<Link<Info, Message, Command>>;
  /** Milliseconds that one batch may take from the moment when it is the instance's turn; 0: any time. */
  timeLimitMs: number;
  events: InstanceEvents<Batch, Info, Message>;
}

interface Posted<Batch> {
  batch: Batch;
  /** Of its claim. */
  slot: number;
}

/**
 * One worker of a batch host with the batches that it has, which it runs one after the other:
 *
 *   posted   [ oldest: it computes | next: waits in its port ]      at most batchesAhead
 *                   |                   '-- taken back where the oldest takes longer than recallAfterMs, or waits for something
 *                   '-- one that takes too long over a batch is ended and restarted
 */
export class BatchInstance<Batch, Info, Message extends { type: string }, Command> {
  readonly #options: InstanceOptions<Batch, Info, Message, Command>;
  readonly #supervisor: WorkerSupervisor<Info, Message, Command>;
  #posted: Posted<Batch>[] = [];
  /** Slots of claims that no batch has. */
  #freeSlots: number[] = [];
  /** null: nothing is taken back. */
  #claims: BatchClaims | null = null;
  #info: Info | null = null;
  #isRunning = false;
  /** How many times it was held. */
  #numHeld = 0;
  #hasEnded = false;
  #timer: NodeJS.Timeout | null = null;
  #recallTimer: NodeJS.Timeout | null = null;
  /** Since when the oldest batch has been the oldest, on performance.now's clock. */
  #oldestSinceMs = 0;
  /** Milliseconds that the latest batch took. */
  #lastMs = Number.POSITIVE_INFINITY;

  constructor(options: InstanceOptions<Batch, Info, Message, Command>) {
    this.#options = options;
    const { events } = options;
    this.#supervisor = new WorkerSupervisor<Info, Message, Command>({
      ...options,
      link: (links) => options.link(links, this.#openClaims()),
      isAwaited: () => this.#posted.length > 0,
      onReady: (_, info) => {
        this.#info = info;
        this.#isRunning = true;
        events.onReady(info);
      },
      onMessage: (message) => {
        if (message.type !== 'closed') this.#receive(message as Message);
      },
      onLost: (error) => this.#lose(error),
      onEnded: (error) => {
        this.#isRunning = false;
        this.#hasEnded = true;
        this.#stopTimers();
        events.onEnded(error);
      },
    });
  }

  /** Code in the worker may have sent anything: what cannot be read is the end of that worker alone. */
  #receive(message: Message): void {
    const { events, name } = this.#options;
    try {
      events.onMessage(message, this.#posted[0]?.batch ?? null);
    } catch (error) {
      const why = `${name} sent a message that cannot be read, and is started again: ${messageOf(error)}`;
      this.#supervisor.replace(new EngineFailure(why, { cause: error }));
    }
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

  /** Batches that it has, the oldest first. */
  get batches(): readonly Batch[] {
    return this.#posted.map(({ batch }) => batch);
  }

  get numPosted(): number {
    return this.#posted.length;
  }

  /** It may have another batch. */
  get isFree(): boolean {
    if (!this.#isRunning || this.#numHeld > 0) return false;
    return this.#posted.length === 0 || (this.#freeSlots.length > 0 && this.#takesAhead());
  }

  /** Of the next batch's claim; null: it cannot be taken back. */
  get nextSlot(): number | null {
    return this.#claims === null ? null : this.#freeSlots.at(-1)!;
  }

  /**
   * It waits for something that another batch may have to be run for, and gets no batch after its present
   * one, until the returned function is called.
   */
  hold(): () => void {
    const { restarts } = this;
    this.#numHeld++;
    this.#giveBack();
    return () => {
      if (restarts === this.restarts && this.#isRunning) this.#numHeld--;
    };
  }

  /** Gives it a batch as a command. False where there is no worker now; throws where the command cannot be copied to it. */
  post(batch: Batch, command: Command, transfer: readonly ArrayBuffer[]): boolean {
    const slot = this.#freeSlots.at(-1)!;
    this.#claims?.offer(slot);
    if (!this.#supervisor.post(command, transfer)) return false;
    this.#freeSlots.pop();
    this.#posted.push({ batch, slot });
    if (this.#posted.length === 1) this.#beginOldest();
    else this.#setRecall();
    return true;
  }

  /** Takes back what waits after the oldest batch, in order; the worker may have begun with some of it. */
  recall(): Batch[] {
    const claims = this.#claims;
    if (claims === null || this.#posted.length < 2) return [];
    const [oldest, ...others] = this.#posted;
    const back = new Set(others.filter(({ slot }) => claims.recall(slot)));
    this.#posted = [oldest!, ...others.filter((one) => !back.has(one))];
    return [...back].map(({ batch }) => batch);
  }

  /** The worker has seen that the batch of this slot was taken back. */
  noteDropped(slot: number): void {
    this.#freeSlots.push(slot);
  }

  /** Sends a command that is no batch. False where there is no worker now. */
  send(command: Command, transfer: readonly ArrayBuffer[] = []): boolean {
    return this.#supervisor.post(command, transfer);
  }

  /** The oldest batch is done. */
  endOldest(): void {
    const oldest = this.#posted.shift();
    if (oldest === undefined) return;
    this.#freeSlots.push(oldest.slot);
    this.#lastMs = performance.now() - this.#oldestSinceMs;
    if (this.#posted.length > 0) this.#beginOldest();
  }

  shutdown(): void {
    this.#supervisor.shutdown();
  }

  terminate(reason: string): void {
    this.#supervisor.terminate(reason);
  }

  #openClaims(): SharedArrayBuffer | null {
    const { batchesAhead, recallAfterMs } = this.#options;
    this.#freeSlots = Array.from({ length: batchesAhead }, (_, slot) => slot);
    const memory = recallAfterMs === null ? null : claimsMemory(batchesAhead);
    this.#claims = memory === null ? null : new BatchClaims(memory);
    return memory;
  }

  #beginOldest(): void {
    const { timeLimitMs, events } = this.#options;
    this.#oldestSinceMs = performance.now();
    if (timeLimitMs > 0) this.#timer ??= setTimeout(() => this.#checkTime(), timeLimitMs);
    events.onBegun(this.#posted[0]!.batch);
  }

  /** A batch after the oldest one would not wait for long. */
  #takesAhead(): boolean {
    const { recallAfterMs } = this.#options;
    if (recallAfterMs === null) return true;
    return this.#lastMs < recallAfterMs && this.#msBeforeRecall() > 0;
  }

  #msBeforeRecall(): number {
    return this.#oldestSinceMs + (this.#options.recallAfterMs ?? 0) - performance.now();
  }

  /** As with the limit of time, the timer stands for whatever batch was the oldest when it was set. */
  #setRecall(): void {
    if (this.#claims === null) return;
    this.#recallTimer ??= setTimeout(() => {
      this.#recallTimer = null;
      if (this.#posted.length < 2) return;
      if (this.#msBeforeRecall() > 0) this.#setRecall();
      else this.#giveBack();
    }, Math.ceil(this.#msBeforeRecall()));
  }

  #giveBack(): void {
    const batches = this.recall();
    if (batches.length > 0) this.#options.events.onRecalled(batches);
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
    const message = `${name} took longer over a batch than the ${timeLimitMs} ms that it may, and is started again.`;
    this.#supervisor.replace(new EngineFailure(message));
  }

  #lose(error: Error): void {
    this.#isRunning = false;
    this.#numHeld = 0;
    this.#lastMs = Number.POSITIVE_INFINITY;
    this.#stopTimers();
    const [begun = null, ...others] = this.#posted.map(({ batch }) => batch);
    this.#posted = [];
    this.#options.events.onLost(error, begun, others);
  }

  #stopTimers(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    if (this.#recallTimer !== null) clearTimeout(this.#recallTimer);
    this.#timer = null;
    this.#recallTimer = null;
  }
}
