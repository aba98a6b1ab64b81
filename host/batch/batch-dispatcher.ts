import { EngineFailure } from '../engine-failure.js';
import type { BatchDuties, BatchEntry } from './batch-duties.js';
import type { BatchInstance } from './batch-instance.js';
import type { HeldEntries } from './held-entries.js';
import type { InstancePool } from './instance-pool.js';
import type { InstanceTurns } from './instance-turns.js';
import { WakeTimer } from './wake-timer.js';

/**
 * Forms batches from what waits and gives them to instances, when something came, a batch ended, or the former's time is there.
 *
 *   former.form -> batch --> the freest instance, or that which the former names, or that which has its turn
 *        ^           |
 *        '- putBack -+- taken back: another instance is idle, this one is to go, or its oldest batch takes too long
 *                    '- lost with an instance before it was begun: given to another one, once
 */
export class BatchDispatcher<
  Entry extends BatchEntry,
  Batch extends object,
  Info,
  Message extends { type: string },
  Command,
> {
  readonly #duties: BatchDuties<Entry, Batch, Info, Message, Command>;
  readonly #instances: InstancePool<Batch, Info, Message, Command>;
  readonly #entries: HeldEntries<Entry>;
  readonly #fail: (entry: Entry, error: unknown) => void;
  readonly #timer = new WakeTimer(() => this.#post());
  /** null: an instance that is free may run a batch. */
  readonly #turns: InstanceTurns | null;
  /** Batches that an instance lost before it began with them. */
  #returned: Batch[] = [];
  readonly #wereReturned = new WeakSet<Batch>();
  #isScheduled = false;
  #isStarted = false;
  #isDraining = false;

  /** @param fail of the host: the request fails, unless it has ended before */
  constructor(
    duties: BatchDuties<Entry, Batch, Info, Message, Command>,
    instances: InstancePool<Batch, Info, Message, Command>,
    entries: HeldEntries<Entry>,
    fail: (entry: Entry, error: unknown) => void,
  ) {
    this.#duties = duties;
    this.#instances = instances;
    this.#entries = entries;
    this.#fail = fail;
    this.#turns = duties.turns?.((instance) => this.#runTurn(instance)) ?? null;
  }

  get hasTurns(): boolean {
    return this.#turns !== null;
  }

  /** All instances have run once. */
  get isStarted(): boolean {
    return this.#isStarted;
  }

  get isDraining(): boolean {
    return this.#isDraining;
  }

  /** Microseconds on the former's clock. */
  nowUs(): number {
    return this.#timer.nowUs();
  }

  /** Instances may be given batches from now on. */
  start(): void {
    this.#isStarted = true;
    this.schedule();
  }

  /** No request will come any more. */
  drain(): void {
    this.#isDraining = true;
    this.schedule();
  }

  /** There is no instance any more. */
  stop(): void {
    this.#timer.set(null);
  }

  /** Once for all requests that come in one turn of the event loop, so that they share a batch. */
  schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      this.#post();
    });
  }

  /** The instance is to go: what waits for it goes elsewhere. */
  retire(index: number): void {
    this.#duties.former.retireInstance?.(index);
    this.#turns?.want(index, false);
    this.takeBack(this.#instances.at(index).recall());
  }

  /** An instance will not begin with these. */
  takeBack(batches: Batch[]): void {
    this.#putBack(batches);
    this.schedule();
  }

  /** A batch of the instance has its answers. */
  noteEnd(instance: BatchInstance<Batch, Info, Message, Command>, batch: Batch): void {
    instance.endOldest();
    this.#turns?.release(this.#instances.indexOf(instance));
    this.#duties.former.settle?.(batch, this.nowUs());
    // The worker's next batch first, then what those who wait do with their answers.
    this.#post();
  }

  /** A worker is lost. @param begun the batch that it was at @param others those that waited for it */
  noteLost(index: number, error: Error, begun: Batch | null, others: readonly Batch[]): void {
    const again = others.filter((batch) => !this.#wereReturned.has(batch));
    const lost = [...(begun === null ? [] : [begun]), ...others.filter((batch) => !again.includes(batch))];
    for (const batch of again) this.#wereReturned.add(batch);
    this.#returned.push(...again);
    for (const batch of lost) this.#failBatch(batch, this.#duties.lostError(error));
    this.#duties.former.noteInstance?.(index, false, this.nowUs());
    this.#turns?.release(index);
    this.#turns?.want(index, false);
  }

  #post(): void {
    this.#postBatches();
    this.#instances.endLeaving((index) => this.#isNeeded(index));
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
      if (next !== null) this.#give(next.batch, this.#instances.at(next.instance));
      else if (freest === undefined || this.#instances.at(freest).numPosted > 0 || !this.#recallOne()) return;
    }
  }

  /** Which instances would run a batch now. What has expired is refused. */
  #wantTurns(turns: InstanceTurns): void {
    const nowUs = this.nowUs();
    const { former } = this.#duties;
    const { refused, wakeAtUs } = former.form(nowUs, [], this.#isDraining);
    for (const { entry, error } of refused) this.#fail(entry, error);
    let nextUs = wakeAtUs ?? Number.POSITIVE_INFINITY;
    const free = this.#free();
    for (const index of this.#instances.indexes) {
      const isFree = free.includes(index);
      const goesAtUs = isFree ? this.#goesAtUs(index, nowUs) : Number.POSITIVE_INFINITY;
      turns.want(index, goesAtUs <= nowUs);
      if (goesAtUs > nowUs) nextUs = Math.min(nextUs, goesAtUs);
    }
    this.#timer.set(nextUs === Number.POSITIVE_INFINITY ? null : nextUs);
  }

  #goesAtUs(instance: number, nowUs: number): number {
    if (this.#returned.length > 0) return nowUs;
    return this.#duties.former.goesAtUs!(nowUs, instance, this.#isDraining);
  }

  /** The instance has its turn: it is given a batch. */
  #runTurn(index: number): boolean {
    const instance = this.#instances.at(index);
    const next = instance.isFree ? this.#nextBatch([index]) : null;
    const isGiven = next !== null && this.#give(next.batch, instance);
    this.#wantTurns(this.#turns!);
    return isGiven;
  }

  /** Takes back a batch that waits for an instance though another one is idle. False: there is none. */
  #recallOne(): boolean {
    for (const instance of this.#instances) {
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

  #free(): number[] {
    return this.#isStarted ? this.#instances.free((index) => this.#isNeeded(index)) : [];
  }

  #isNeeded(index: number): boolean {
    return this.#duties.former.needsInstance?.(index) === true;
  }

  #nextBatch(free: readonly number[]): { batch: Batch; instance: number } | null {
    while (free.length > 0 && this.#returned.length > 0) {
      const batch = this.#returned.shift()!;
      for (const entry of this.#duties.entriesOf(batch))
        if (this.#entries.has(entry)) return { batch, instance: free[0]! };
      this.#drop(batch);
    }
    const nowUs = this.nowUs();
    const { former } = this.#duties;
    const { batch, instance = free[0], refused, wakeAtUs } = former.form(nowUs, free, this.#isDraining);
    for (const { entry, error } of refused) this.#fail(entry, error);
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
    for (const entry of this.#duties.entriesOf(batch)) this.#fail(entry, error);
  }

  #drop(batch: Batch): void {
    this.#duties.drop?.(batch);
    this.#duties.former.settle?.(batch, this.nowUs());
  }
}
