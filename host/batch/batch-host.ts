import { onAbort } from '../../base/on-abort.js';
import type { ManagerState } from '../../callbacks/gpt-manager-options.js';
import { HostClosedError, QueueFullError } from '../../callbacks/token-request.js';
import type { CloseOptions } from '../in-process-host.js';
import { ManagerLife } from '../manager-life.js';
import { BatchDispatcher } from './batch-dispatcher.js';
import type { BatchDuties, BatchEntry } from './batch-duties.js';
import type { BatchHostOptions } from './batch-host-options.js';
import type { BatchInstance, InstanceEvents, InstanceState } from './batch-instance.js';
import { HeldEntries } from './held-entries.js';
import { InstancePool } from './instance-pool.js';

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
  readonly #entries = new HeldEntries<Entry>();
  readonly #instances: InstancePool<Batch, Info, Message, Command>;
  readonly #dispatcher: BatchDispatcher<Entry, Batch, Info, Message, Command>;
  /** Its workers were ended in the middle of what they did, because it is closed. */
  #isTerminated = false;
  /** Why it takes no requests though its workers will be back; null: it takes them. */
  #whyHeld: string | null = null;
  #endError: Error | null = null;

  constructor(options: BatchHostOptions, duties: BatchDuties<Entry, Batch, Info, Message, Command>) {
    this.#options = options;
    this.#duties = duties;
    this.#life = new ManagerLife(options);
    this.#instances = new InstancePool(options, (index, instance) => this.#eventsOf(index, instance));
    this.#dispatcher = new BatchDispatcher(duties, this.#instances, this.#entries, (entry, error) =>
      this.fail(entry, error),
    );
    this.#instances.openAll();
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

  /** Info of the latest worker of each instance; null: it is not loaded yet. */
  get infos(): readonly (Info | null)[] {
    return this.#instances.infos;
  }

  /** What each instance does now. */
  get instanceStates(): readonly InstanceState[] {
    return this.#instances.states;
  }

  /** Workers started after the first one of each instance. */
  get restarts(): number {
    return this.#instances.restarts;
  }

  /** The process of each instance; null where it is a thread, and while there is none. */
  get pids(): readonly (number | null)[] {
    return this.#instances.pids;
  }

  /** The number of an instance, by which formers and turns know it. */
  indexOf(instance: BatchInstance<Batch, Info, Message, Command>): number {
    return this.#instances.indexOf(instance);
  }

  /**
   * Opens one more instance, whose requests may come as soon as it runs. @param prepare called with its number before its worker is opened
   * @returns its number, and a promise that resolves when it runs and rejects where it cannot be loaded,
   * which is not reported to the others
   */
  addInstance(prepare: (index: number) => void): { index: number; ready: Promise<void> } {
    return this.#instances.add((index) => {
      prepare(index);
      this.#duties.former.addInstance?.(index);
    });
  }

  /**
   * An instance is to go: it gets no new work, ends when it has done what it has and nothing that belongs to it can come any more. Others may not
   * run any more: one has to stay. Resolves when its worker has ended.
   */
  removeInstance(index: number): Promise<void> {
    const gone = this.#instances.noteLeaving(index);
    this.#dispatcher.retire(index);
    return gone;
  }

  /** Requests that wait or run. */
  get size(): number {
    return this.#entries.size;
  }

  /** Requests of which an instance has had a part. */
  get running(): number {
    return this.#entries.running;
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
    if (this.#dispatcher.isDraining || this.state === 'failed' || this.state === 'stopped') {
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
    this.#duties.former.add(entry, this.#dispatcher.nowUs());
    this.#entries.add(entry, signal ? onAbort(signal, () => this.fail(entry, signal.reason)) : null);
    this.#dispatcher.schedule();
  }

  /** The request has its answer. */
  settle(entry: Entry): void {
    this.#entries.remove(entry);
  }

  /** The request fails; nothing happens where it has ended before. */
  fail(entry: Entry, error: unknown): void {
    if (!this.#entries.has(entry)) return;
    this.#duties.former.remove(entry, this.#dispatcher.nowUs());
    this.settle(entry);
    if (entry.hasStarted) this.#noteGone(entry);
    else if (this.#dispatcher.hasTurns) this.#dispatcher.schedule(); // an instance may wait for its turn with this entry alone
    entry.fail(error);
  }

  #noteGone(entry: Entry): void {
    const { noteGone, entriesOf } = this.#duties;
    if (noteGone === undefined) return;
    for (const instance of this.#instances) {
      for (const batch of instance.batches) {
        for (const one of entriesOf(batch)) if (one === entry) noteGone(entry, batch, instance);
      }
    }
  }

  /** The former may have a batch that it had not before, for a reason that the host does not know. */
  wake(): void {
    this.#dispatcher.schedule();
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

  /**
   * Sends an instance a command that is no batch, after the batches that it was sent. Nothing happens where
   * it has no worker.
   */
  send(instance: number, command: Command): void {
    this.#instances.find(instance)?.send(command);
  }

  /** Takes no more requests, lets those that were taken end, and ends the workers. May be called again, to abort. */
  async close({ abort = false, timeoutMs, terminateAfterMs }: CloseOptions = {}): Promise<void> {
    this.#dispatcher.drain();
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
    if (this.#entries.size > 0) await this.#entries.whenEmpty();
    for (const instance of this.#instances) instance.shutdown();
    await this.#life.ended;
    for (const timer of timers) clearTimeout(timer);
  }

  #eventsOf(
    index: number,
    instance: () => BatchInstance<Batch, Info, Message, Command>,
  ): InstanceEvents<Batch, Info, Message> {
    return {
      onReady: (info) => {
        this.#duties.former.noteInstance?.(index, true, this.#dispatcher.nowUs());
        this.#instances.noteReady(index);
        this.#noteReady(info);
      },
      onMessage: (message, oldest) => this.#receive(instance(), message, oldest),
      onLost: (error, begun, others) => this.#lose(index, error, begun, others),
      onBegun: (batch) => this.#duties.noteBegun?.(batch),
      onRecalled: (batches) => this.#dispatcher.takeBack(batches),
      onEnded: (error) => this.#noteEnd(index, error),
    };
  }

  #noteReady(info: Info): void {
    if (!this.#dispatcher.isStarted && !this.#instances.isAllRunning) return;
    const [first] = this.#instances;
    this.#dispatcher.start();
    this.#duties.noteReady(info);
    this.#life.setState('running', null);
    this.#life.noteReady(first?.info ?? info);
  }

  #receive(
    instance: BatchInstance<Batch, Info, Message, Command>,
    message: Message,
    oldest: Batch | null,
  ): void {
    try {
      if (oldest !== null && this.#duties.endsBatch(message, oldest))
        this.#dispatcher.noteEnd(instance, oldest);
      this.#duties.deliver(message, oldest, instance);
    } catch (error) {
      const lost = this.#duties.lostError(error as Error);
      if (oldest !== null) for (const entry of this.#duties.entriesOf(oldest)) this.fail(entry, lost);
      throw error;
    }
  }

  #lose(index: number, error: Error, begun: Batch | null, others: readonly Batch[]): void {
    this.#dispatcher.noteLost(index, error, begun, others);
    if (!this.#dispatcher.isStarted || this.#isTerminated) return;
    if (!this.#instances.isAnyRunning && (this.state === 'running' || this.state === 'restarting'))
      this.#life.setState('restarting', error);
    this.#life.report(error);
    this.#dispatcher.schedule();
  }

  /** An instance has ended for good. Before all were ready, it takes the others with it. */
  #noteEnd(index: number, error: Error | null): void {
    if (this.#instances.isChanging(index)) this.#forget(index, error);
    else this.#endError ??= error;
    if (!this.#instances.haveAllEnded) {
      if (!this.#dispatcher.isStarted) this.#terminate(`${this.#options.subject} cannot be loaded.`);
      return;
    }
    this.#dispatcher.stop();
    const { subject } = this.#options;
    this.#life.noteEnded(this.#endError, `${subject} was closed before it was loaded.`);
    const why =
      this.#endError === null ? `${subject} was shut down.` : `The engine failed: ${this.#endError.message}`;
    this.#failAll(new HostClosedError(why));
  }

  /** An instance is gone that was to go, or could not be loaded. */
  #forget(index: number, error: Error | null): void {
    this.#instances.remove(index, error);
    this.#duties.noteRemoved?.(index);
    this.#dispatcher.schedule();
  }

  #terminate(reason: string): void {
    this.#isTerminated = true;
    this.#instances.terminate(reason);
  }

  #failAll(error: Error): void {
    for (const entry of [...this.#entries]) this.fail(entry, error);
  }
}
