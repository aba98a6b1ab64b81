import { onAbort } from '../../base/on-abort.js';
import type { ManagerState } from '../../callbacks/gpt-manager-options.js';
import {
  DEFAULT_TERMINATE_TIMEOUT_MS,
  DEFAULT_WATCHDOG_TIMEOUT_MS,
} from '../../callbacks/options/optional-params.js';
import type { WorkerRestartOptions } from '../../callbacks/restart-policy.js';
import { HostClosedError, QueueFullError } from '../../callbacks/token-request.js';
import { EngineFailure } from '../engine-failure.js';
import type { CloseOptions } from '../in-process-host.js';
import { openLink } from '../links/open-link.js';
import type { LinkEvents, WorkerLink } from '../links/worker-link.js';
import { type LifeOptions, ManagerLife } from '../manager-life.js';
import type { BatchDuties, BatchEntry } from './batch-duties.js';
import { BatchInstance, type InstanceEvents, type InstanceState } from './batch-instance.js';
import { InstanceChanges } from './instance-changes.js';
import type { InstanceTurns } from './instance-turns.js';
import { WakeTimer } from './wake-timer.js';

/** Opens a worker. @param more fields of its data */
export type OpenOne = <Message extends { type: string }, Command>(
  more: object,
  events: LinkEvents<Message>,
) => WorkerLink<Command>;
export type OpenGroup = <Message extends { type: string }, Command>(
  events: LinkEvents<Message>,
  open: OpenOne,
) => WorkerLink<Command>;

export interface BatchHostOptions extends LifeOptions {
  /** What a sentence calls what runs here, at its beginning: 'The encoder'. */
  subject: string;
  /** The module that each worker runs. */
  script: URL;
  /** What the worker of an instance is given. @param claims memory of BatchClaims, where batches are taken back */
  data: (instance: number, claims: SharedArrayBuffer | null) => object;
  /** Whose worker it is, as a sentence says it; default 'The engine'. */
  ownerName?: (instance: number) => string;
  /** Opens an instance's worker where that is more than one thread or process, with the function that opens one. */
  openGroup?: OpenGroup | undefined;
  /** How many of them; default 1. */
  instances?: number | undefined;
  /** Batches that an instance may have: those beyond the first wait in its port, so that it never waits for this thread. Default 1. */
  batchesAhead?: number | undefined;
  /**
   * Milliseconds that a batch may take before the one behind it is taken back, so that it can grow, expire, be overtaken and go
   * to whoever is free; while batches take longer, none waits behind another. The worker has to claim its batches. Not known of
   * processes: they get no batch ahead where this is set. Default: batches ahead stay where they are.
   */
  recallAfterMs?: number | undefined;
  /** Entries that wait or run before `submit` throws QueueFullError. */
  maxEntries: number;
  /** Milliseconds that an instance may take over a batch; 0, the default: any time. */
  timeLimitMs?: number | undefined;
  /** Milliseconds that an instance may take to start anew; 0, the default: any time. */
  startLimitMs?: number | undefined;
  /** See OptionalParams of the GptManager: they mean the same. */
  isolate?: boolean | undefined;
  workerRestart?: WorkerRestartOptions | false | undefined;
  watchdogTimeoutMs?: number | undefined;
  terminateTimeoutMs?: number | undefined;
}

/**
 * Runs batches of requests in workers, each a thread or a process, for everything that is not the loop of tokens. Batches are formed here,
 * from whatever waits when a worker can take another one.
 *
 *                                          +-> instance 0   [ computes | waits ]
 *   submit -> former: who waits -> batch --+-> instance 1   [ computes | waits ]    -> endsBatch -> deliver
 *                ^                         '-> ...
 *                '---- asked when something came, a batch ended, or its time is there
 *
 * A batch that waits for an instance while another one is free goes there, where batches can be taken back. A former whose batches belong to an
 * instance, since that has what came before them, says which of the free ones is to have a batch.
 * An instance that dies takes with it the batch that it computed; a batch that waited for it goes to another instance, once.
 * Where none will run any more, everything fails with a HostClosedError.
 */
export class BatchHost<
  Entry extends BatchEntry,
  Batch extends object,
  Info,
  Message extends { type: string },
  Command,
> {
  readonly #options: BatchHostOptions;
  readonly #duties: BatchDuties<Entry, Batch, Info, Message, Command>;
  readonly #life: ManagerLife<Info>;
  /** By their numbers, by which formers and turns know them. */
  readonly #instances = new Map<number, BatchInstance<Batch, Info, Message, Command>>();
  /** Those that are to go, or have not come yet. */
  readonly #changes = new InstanceChanges();
  /** In order of arrival. */
  readonly #entries = new Set<Entry>();
  /** Batches that an instance lost before it began with them. */
  #returned: Batch[] = [];
  readonly #wereReturned = new WeakSet<Batch>();
  readonly #timer = new WakeTimer(() => this.#post());
  /** null: an instance that is free may run a batch. */
  readonly #turns: InstanceTurns | null;
  #isReady = false;
  #isClosed = false;
  /** Its workers were ended in the middle of what they did, because it is closed. */
  #isTerminated = false;
  #isScheduled = false;
  /** Why it takes no requests though its workers will be back; null: it takes them. */
  #whyHeld: string | null = null;
  #endError: Error | null = null;
  #onEmpty: (() => void)[] = [];

  constructor(options: BatchHostOptions, duties: BatchDuties<Entry, Batch, Info, Message, Command>) {
    this.#options = options;
    this.#duties = duties;
    this.#life = new ManagerLife(options);
    this.#turns = duties.turns?.((instance) => this.#runTurn(instance)) ?? null;
    for (let index = 0; index < (options.instances ?? 1); index++)
      this.#instances.set(index, this.#open(index));
  }

  /** Settles when all instances are loaded; rejects where one cannot be. */
  get ready(): Promise<Info> {
    return this.#life.ready;
  }

  get state(): ManagerState {
    return this.#life.state;
  }

  /** Why the state is 'failed' or 'restarting', else null. */
  get failure(): Error | null {
    return this.#life.failure;
  }

  /** What the instances say of themselves, of the latest worker of each; null: it is not loaded yet. */
  get infos(): readonly (Info | null)[] {
    return this.#staying.map(({ info }) => info);
  }

  /** What each instance does now. */
  get instanceStates(): readonly InstanceState[] {
    return this.#staying.map(({ state }) => state);
  }

  /** Workers started after the first one of each instance. */
  get restarts(): number {
    let sum = this.#changes.pastRestarts;
    for (const { restarts } of this.#instances.values()) sum += restarts;
    return sum;
  }

  /** The process of each instance; null where it is a thread, and while there is none. */
  get pids(): readonly (number | null)[] {
    return this.#staying.map(({ pid }) => pid);
  }

  /** The number of an instance, by which formers and turns know it. */
  indexOf(instance: BatchInstance<Batch, Info, Message, Command>): number {
    for (const [index, one] of this.#instances) if (one === instance) return index;
    return -1;
  }

  /** Instances that are not to go. */
  get #staying(): BatchInstance<Batch, Info, Message, Command>[] {
    return [...this.#instances].flatMap(([index, one]) => (this.#changes.isLeaving(index) ? [] : [one]));
  }

  /**
   * Opens one more instance, whose requests may come as soon as it runs. @param prepare called with its number before its worker is opened
   * @returns its number, and a promise that resolves when it runs and rejects where it cannot be loaded, which the others do not hear of
   */
  addInstance(prepare: (index: number) => void): { index: number; ready: Promise<void> } {
    let index = 0;
    while (this.#instances.has(index)) index++;
    const ready = this.#changes.noteComing(index);
    prepare(index);
    this.#duties.former.addInstance?.(index);
    this.#instances.set(index, this.#open(index));
    return { index, ready };
  }

  /**
   * An instance is to go: it gets no new work, ends when it has done what it has and nothing that belongs to it can come any more. Others may not
   * run any more: one has to stay. Resolves when its worker has ended.
   */
  removeInstance(index: number): Promise<void> {
    const gone = this.#changes.noteLeaving(index);
    this.#duties.former.retireInstance?.(index);
    this.#turns?.want(index, false);
    this.#putBack(this.#instances.get(index)!.recall());
    this.#schedule();
    return gone;
  }

  /** Ends workers of instances that are to go and have nothing to do any more. */
  #endLeaving(): void {
    for (const index of this.#changes.leaving) {
      const instance = this.#instances.get(index)!;
      if (instance.numPosted > 0 || this.#duties.former.needsInstance?.(index)) continue;
      const end = () => instance.terminate(`${this.#options.subject} has an instance less.`);
      if (!this.#changes.beginEnd(index, end)) continue;
      if (instance.isRunning) instance.shutdown();
      else end();
    }
  }

  /** Requests that wait or run. */
  get size(): number {
    return this.#entries.size;
  }

  /** Requests of which an instance has had a part. */
  get running(): number {
    let count = 0;
    for (const entry of this.#entries) if (entry.hasStarted) count++;
    return count;
  }

  /** It waits or runs, and wants its answer. */
  has(entry: Entry): boolean {
    return this.#entries.has(entry);
  }

  entries(): Iterable<Entry> {
    return this.#entries;
  }

  /** @throws HostClosedError, QueueFullError */
  requireRoom(): void {
    if (this.#isClosed || this.state === 'failed' || this.state === 'stopped') {
      throw new HostClosedError(this.failure?.message ?? 'The host is closed and takes no more requests.');
    }
    if (this.#whyHeld !== null) throw new HostClosedError(this.#whyHeld);
    const { maxEntries } = this.#options;
    if (this.#entries.size >= maxEntries) throw new QueueFullError(maxEntries);
  }

  /**
   * Takes a request. An aborted signal fails it with its reason, at once.
   * @throws as requireRoom, the signal's reason, or what the former refuses it with; then its `fail` is not called
   */
  submit(entry: Entry, signal?: AbortSignal): void {
    this.requireRoom();
    signal?.throwIfAborted();
    this.#duties.former.add(entry, this.#timer.nowUs());
    entry.release = signal ? onAbort(signal, () => this.fail(entry, signal.reason)) : null;
    this.#entries.add(entry);
    this.#schedule();
  }

  /** The request has its answer. */
  settle(entry: Entry): void {
    entry.release?.();
    this.#entries.delete(entry);
    if (this.#entries.size === 0) for (const resolve of this.#onEmpty.splice(0)) resolve();
  }

  /** The request fails; nothing happens where it has ended before. */
  fail(entry: Entry, error: unknown): void {
    if (!this.#entries.has(entry)) return;
    this.#duties.former.remove(entry, this.#timer.nowUs());
    this.settle(entry);
    if (entry.hasStarted) this.#noteGone(entry);
    else if (this.#turns !== null) this.#schedule(); // an instance may wait for its turn with this entry alone
    entry.fail(error);
  }

  #noteGone(entry: Entry): void {
    const { noteGone, entriesOf } = this.#duties;
    if (noteGone === undefined) return;
    for (const instance of this.#instances.values()) {
      for (const batch of instance.batches) {
        for (const one of entriesOf(batch)) if (one === entry) noteGone(entry, batch, instance);
      }
    }
  }

  /** The former may have a batch that it had not before, for a reason that the host does not know. */
  wake(): void {
    this.#schedule();
  }

  /** Takes no requests for this reason and fails those that it has, while the first start is over; null: takes them again. */
  hold(why: string | null): void {
    this.#whyHeld = this.state === 'restarting' ? why : null;
    if (this.#whyHeld !== null) this.#failAll(new HostClosedError(this.#whyHeld));
  }

  /** A failure that belongs to no request. */
  report(error: Error): void {
    this.#life.report(error);
  }

  tell(callback: string, call: () => unknown): void {
    this.#life.tell(callback, call);
  }

  /** Sends an instance a command that is no batch, behind the batches that it was sent. Nothing happens where it has no worker. */
  send(instance: number, command: Command): void {
    this.#instances.get(instance)?.send(command);
  }

  /** Takes no more requests, lets those that were taken end, and ends the workers. May be called again, to abort. */
  async close({ abort = false, timeoutMs, terminateAfterMs }: CloseOptions = {}): Promise<void> {
    this.#isClosed = true;
    const closed = `${this.#options.subject} was closed.`;
    const timers: NodeJS.Timeout[] = [];
    const cancel = () => {
      if (terminateAfterMs !== undefined) {
        timers.push(setTimeout(() => this.#terminate(closed), terminateAfterMs));
      }
      this.#failAll(new HostClosedError(closed));
    };
    if (abort) cancel();
    else if (timeoutMs !== undefined) timers.push(setTimeout(cancel, timeoutMs));
    this.#schedule();
    if (this.#entries.size > 0) await new Promise<void>((resolve) => this.#onEmpty.push(resolve));
    for (const instance of this.#instances.values()) instance.shutdown();
    await this.#life.ended;
    for (const timer of timers) clearTimeout(timer);
  }

  #open(index: number): BatchInstance<Batch, Info, Message, Command> {
    const { script, data, isolate = false, watchdogTimeoutMs = DEFAULT_WATCHDOG_TIMEOUT_MS } = this.#options;
    const { recallAfterMs = null, batchesAhead = 1, openGroup } = this.#options;
    const isProcess = isolate && recallAfterMs !== null;
    const owner = this.#options.ownerName?.(index) ?? 'The engine';
    const events: InstanceEvents<Batch, Info, Message> = {
      onReady: (info) => {
        this.#duties.former.noteInstance?.(index, true, this.#timer.nowUs());
        this.#changes.noteReady(index);
        this.#noteReady(info);
      },
      onMessage: (message, oldest) => this.#receive(instance, message, oldest),
      onLost: (error, begun, others) => this.#lose(index, error, begun, others),
      onBegun: (batch) => this.#duties.noteBegun?.(batch),
      onRecalled: (batches) => {
        this.#putBack(batches);
        this.#schedule();
      },
      onEnded: (error) => this.#noteEnd(index, error),
    };
    const instance = new BatchInstance<Batch, Info, Message, Command>({
      name: owner,
      batchesAhead: isProcess ? 1 : batchesAhead,
      recallAfterMs: isProcess ? null : recallAfterMs,
      timeLimitMs: this.#options.timeLimitMs ?? 0,
      startLimitMs: this.#options.startLimitMs,
      link: (links, claims) => {
        const open: OpenOne = (more, events) =>
          openLink(
            script,
            { ...data(index, claims), ...more },
            // Whatever the worker sends is for whoever opens it.
            events as unknown as LinkEvents<{ type: string }>,
            { isolate, watchdogTimeoutMs, owner },
          );
        return openGroup === undefined ? open({}, links) : openGroup(links, open);
      },
      restart: this.#options.workerRestart ?? {},
      watchdogTimeoutMs,
      terminateTimeoutMs: this.#options.terminateTimeoutMs ?? DEFAULT_TERMINATE_TIMEOUT_MS,
      events,
    });
    return instance;
  }

  #noteReady(info: Info): void {
    const instances = [...this.#instances.values()];
    if (!this.#isReady && !instances.every(({ isRunning }) => isRunning)) return;
    this.#isReady = true;
    this.#duties.noteReady(info);
    this.#life.setState('running', null);
    this.#life.noteReady(instances[0]?.info ?? info);
    this.#schedule();
  }

  /** Once for all requests that come in one turn of the event loop, so that they share a batch. */
  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      this.#post();
    });
  }

  #post(): void {
    this.#postBatches();
    this.#endLeaving();
  }

  #postBatches(): void {
    if (this.#turns !== null) {
      this.#wantTurns(this.#turns);
      this.#turns.go();
      return;
    }
    for (;;) {
      const free = this.#free();
      const [freest] = free;
      const next = this.#nextBatch(free);
      if (next !== null) this.#give(next.batch, this.#instances.get(next.instance)!);
      else if (freest === undefined || this.#instances.get(freest)!.numPosted > 0 || !this.#recallOne())
        return;
    }
  }

  /** Which instances would run a batch now. What has expired is refused. */
  #wantTurns(turns: InstanceTurns): void {
    const nowUs = this.#timer.nowUs();
    const { former } = this.#duties;
    const { refused, wakeAtUs } = former.form(nowUs, [], this.#isClosed);
    for (const { entry, error } of refused) this.fail(entry, error);
    let nextUs = wakeAtUs ?? Number.POSITIVE_INFINITY;
    const free = this.#free();
    for (const index of this.#instances.keys()) {
      const isFree = free.includes(index);
      const goesAtUs = isFree ? this.#goesAtUs(index, nowUs) : Number.POSITIVE_INFINITY;
      turns.want(index, goesAtUs <= nowUs);
      if (goesAtUs > nowUs) nextUs = Math.min(nextUs, goesAtUs);
    }
    this.#timer.set(nextUs === Number.POSITIVE_INFINITY ? null : nextUs);
  }

  #goesAtUs(instance: number, nowUs: number): number {
    if (this.#returned.length > 0) return nowUs;
    return this.#duties.former.goesAtUs!(nowUs, instance, this.#isClosed);
  }

  /** The instance has its turn: it is given a batch. */
  #runTurn(index: number): boolean {
    const instance = this.#instances.get(index)!;
    const next = instance.isFree ? this.#nextBatch([index]) : null;
    const isGiven = next !== null && this.#give(next.batch, instance);
    this.#wantTurns(this.#turns!);
    return isGiven;
  }

  /** Takes back a batch that waits for an instance though another one is idle. False: there is none. */
  #recallOne(): boolean {
    for (const instance of this.#instances.values()) {
      const batches = instance.recall();
      this.#putBack(batches);
      if (batches.length > 0) return true;
    }
    return false;
  }

  #putBack(batches: Batch[]): void {
    for (const batch of batches.toReversed()) {
      const { former, entriesOf } = this.#duties;
      const entries = [...entriesOf(batch)].filter((entry) => this.#entries.has(entry));
      for (const entry of entries) entry.hasStarted = false;
      if (former.putBack === undefined) this.#returned.unshift(batch);
      else {
        this.#duties.drop?.(batch);
        former.putBack(entries);
      }
    }
  }

  /** Instances that may have a batch now, the one with the fewest first. */
  #free(): number[] {
    if (!this.#isReady) return [];
    const instances = this.#instances;
    const free: number[] = [];
    for (const [index, { isFree }] of instances) if (isFree && this.#mayRun(index)) free.push(index);
    return free.sort((one, other) => instances.get(one)!.numPosted - instances.get(other)!.numPosted);
  }

  /** One that is to go runs only what belongs to it. */
  #mayRun(index: number): boolean {
    return !this.#changes.isLeaving(index) || this.#duties.former.needsInstance?.(index) === true;
  }

  #nextBatch(free: readonly number[]): { batch: Batch; instance: number } | null {
    while (free.length > 0 && this.#returned.length > 0) {
      const batch = this.#returned.shift()!;
      for (const entry of this.#duties.entriesOf(batch))
        if (this.#entries.has(entry)) return { batch, instance: free[0]! };
      this.#drop(batch);
    }
    const nowUs = this.#timer.nowUs();
    const { former } = this.#duties;
    const { batch, instance = free[0], refused, wakeAtUs } = former.form(nowUs, free, this.#isClosed);
    for (const { entry, error } of refused) this.fail(entry, error);
    this.#timer.set(wakeAtUs);
    return batch === null ? null : { batch, instance: instance! };
  }

  /** False: the instance does not have it. */
  #give(batch: Batch, instance: BatchInstance<Batch, Info, Message, Command>): boolean {
    for (const entry of this.#duties.entriesOf(batch)) entry.hasStarted = true;
    try {
      const { command, transfer } = this.#duties.pack(batch, instance.nextSlot);
      if (instance.post(batch, command, transfer)) return true;
      if (this.#duties.former.noteInstance === undefined) this.#returned.push(batch);
      else this.#failBatch(batch, this.#duties.lostError(new EngineFailure('Its worker has just ended.')));
    } catch (error) {
      this.#failBatch(batch, error);
    }
    return false;
  }

  /** The batch has no answer, and never will. */
  #failBatch(batch: Batch, error: unknown): void {
    this.#drop(batch);
    for (const entry of this.#duties.entriesOf(batch)) this.fail(entry, error);
  }

  #drop(batch: Batch): void {
    this.#duties.drop?.(batch);
    this.#duties.former.settle?.(batch, this.#timer.nowUs());
  }

  #receive(
    instance: BatchInstance<Batch, Info, Message, Command>,
    message: Message,
    oldest: Batch | null,
  ): void {
    try {
      if (oldest !== null && this.#duties.endsBatch(message, oldest)) {
        instance.endOldest();
        this.#turns?.release(this.indexOf(instance));
        this.#duties.former.settle?.(oldest, this.#timer.nowUs());
        // The worker's next batch first, then what those who wait do with their answers.
        this.#post();
      }
      this.#duties.deliver(message, oldest, instance);
    } catch (error) {
      const lost = this.#duties.lostError(error as Error);
      if (oldest !== null) for (const entry of this.#duties.entriesOf(oldest)) this.fail(entry, lost);
      throw error;
    }
  }

  #lose(instance: number, error: Error, begun: Batch | null, others: Batch[]): void {
    const again = others.filter((batch) => !this.#wereReturned.has(batch));
    const lost = [...(begun === null ? [] : [begun]), ...others.filter((batch) => !again.includes(batch))];
    for (const batch of again) this.#wereReturned.add(batch);
    this.#returned.push(...again);
    for (const batch of lost) this.#failBatch(batch, this.#duties.lostError(error));
    this.#duties.former.noteInstance?.(instance, false, this.#timer.nowUs());
    this.#turns?.release(instance);
    this.#turns?.want(instance, false);
    if (!this.#isReady || this.#isTerminated) return;
    const runs = [...this.#instances.values()].some(({ isRunning }) => isRunning);
    if (!runs && (this.state === 'running' || this.state === 'restarting'))
      this.#life.setState('restarting', error);
    this.#life.report(error);
    this.#schedule();
  }

  /** An instance has ended for good. Before all were ready, it takes the others with it. */
  #noteEnd(index: number, error: Error | null): void {
    if (this.#changes.isOf(index)) this.#forget(index, error);
    else this.#endError ??= error;
    if (![...this.#instances.values()].every(({ hasEnded }) => hasEnded)) {
      if (!this.#isReady) this.#terminate(`${this.#options.subject} cannot be loaded.`);
      return;
    }
    this.#timer.set(null);
    const { subject } = this.#options;
    this.#life.noteEnded(this.#endError, `${subject} was closed before it was loaded.`);
    const why =
      this.#endError === null ? `${subject} was shut down.` : `The engine failed: ${this.#endError.message}`;
    this.#failAll(new HostClosedError(why));
  }

  /** An instance is gone that was to go, or could not be loaded. */
  #forget(index: number, error: Error | null): void {
    const { restarts } = this.#instances.get(index)!;
    this.#instances.delete(index);
    this.#duties.noteRemoved?.(index);
    this.#changes.noteEnded(index, restarts, error);
    this.#schedule();
  }

  #terminate(reason: string): void {
    this.#isTerminated = true;
    for (const instance of this.#instances.values()) instance.terminate(reason);
  }

  #failAll(error: Error): void {
    for (const entry of [...this.#entries]) this.fail(entry, error);
  }
}
