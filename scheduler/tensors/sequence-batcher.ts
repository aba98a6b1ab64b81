import { Chain } from './chain.js';
import { DeadlineHeap } from './deadline-heap.js';
import { type DirectOptions, DirectSlots } from './sequences/direct-slots.js';
import { FreeSlots } from './sequences/free-slots.js';
import type { InstanceSlots } from './sequences/instance-slots.js';
import { LostSequences } from './sequences/lost-sequences.js';
import { OldestCandidates, type OldestOptions } from './sequences/oldest-candidates.js';
import { Line, type Queued, type SequenceKey, type SequenceRequest } from './sequences/sequence-line.js';

/** How sequences get to instances; see sequenceBatcher of batcher-presets.ts. */
export interface SequenceBatcherConfig {
  readonly instances: number;
  /** Sequences that an instance has at once. */
  readonly slots: number;
  /** Microseconds after which a sequence that sends nothing is over. */
  readonly maxIdleUs: number;
  readonly strategy: ({ kind: 'direct' } & DirectOptions) | ({ kind: 'oldest' } & OldestOptions);
}

/** Why a request may not come: its sequence was not started, or its state was lost with an instance. */
export type SequenceRefusal = 'notStarted' | 'lost';

/** Why a request that waited will not be run. */
export type SequenceReason =
  /** Its sequence has waited for too long for a slot. */
  | 'expired'
  /** A request before it was cancelled, and the sequence is over. */
  | 'cancelled'
  /** The instance with the state of its sequence was lost. */
  | 'lost';

/** A request of a batch: the row it is, and the number of its sequence. */
export interface SequenceRow<R> {
  readonly request: R;
  readonly slot: number;
  readonly sequence: number;
  readonly start: boolean;
  readonly end: boolean;
}

export interface SequenceBatch<R> {
  readonly instance: number;
  /** Rows, of which those that no request has are empty. */
  readonly slots: number;
  readonly rows: readonly SequenceRow<R>[];
}

/** A sequence that is over without its END having run: the instance may forget its state. */
export interface EndedSequence {
  readonly instance: number;
  readonly sequence: number;
}

/** What the batcher answers. */
export interface NextSequenceBatch<R> {
  /** What one of the free instances is to run now; null: nothing yet. */
  readonly batch: SequenceBatch<R> | null;
  /** Requests that will not be run; none of them waits any more. */
  readonly refused: readonly { readonly request: R; readonly reason: SequenceReason }[];
  /** Ended sequences, reported to their instances before the batch. */
  readonly ended: readonly EndedSequence[];
  /** Time of the next change if no request arrives, leaves or finishes; null: never. */
  readonly wakeAtUs: number | null;
}

interface InstanceState<R> {
  isRunning: boolean;
  /** No further sequence comes to it. */
  isLeaving: boolean;
  readonly free: FreeSlots;
  /** Lines that have its slots. */
  readonly lines: Map<number, Line<R>>;
  offered: InstanceSlots<R>;
}

/**
 * Brings the requests of a sequence, one after the other, to the instance that has its state, as Triton's sequence batcher does. It has no
 * clock and no timer: each call is given the time in microseconds, of any clock that does not run backwards.
 *
 *            key is known        a slot is free                     strategy
 *   add ---+------------> line ---------------> instance 0  slot 0  [ r3 r2 ]--offer--> DirectSlots, or --> batch of instance 0
 *          | START                                          slot 1  [ r1    ]           OldestCandidates
 *          '------------> line -----.           instance 1  slot 0  [       ] idle: its time runs
 *                                   | none is                 ^
 *                                   v                         | END, idle, cancelled: the slot is free
 *                               backlog  [ s1 ] [ t2 t1 ] ----'
 *
 *   next(now, free instances) -> batch, refused, ended, wakeAtUs          settle(batch): the next of each line may run
 *
 * A slot is the lowest that is free in any instance, so that sequences spread. One request of a line runs at a time. An instance is given its next batch
 * when the one before is settled. A sequence is idle while it has no request, neither in the queue nor in an instance; Triton counts from the arrival of
 * the latest request, and so ends a sequence whose client waits for an answer for longer than that.
 *
 * To come, to leave and to end takes as many steps as there are instances, and the logarithm of what waits; a batch as many as it has rows; to cut a queue or to lose an instance as many as
 * there are requests that go.
 * Source of the rules: github.com/triton-inference-server/core, src/sequence_batch_scheduler.
 */
export class SequenceBatcher<R extends SequenceRequest> {
  readonly #config: SequenceBatcherConfig;
  readonly #instances: InstanceState<R>[];
  /** Lines that are open, by their keys. */
  readonly #lines = new Map<SequenceKey, Line<R>>();
  /** Lines without a slot, in order of arrival. */
  readonly #backlog = new Chain<Line<R>>();
  readonly #lost = new LostSequences();
  /** Requests that wait or run. */
  readonly #queued = new Map<R, Queued<R>>();
  readonly #deadlines = new DeadlineHeap<Line<R>>();
  #refused: { request: R; reason: SequenceReason }[] = [];
  #ended: EndedSequence[] = [];
  #numLines = 0;
  #numRequests = 0;
  #numSequences = 0;
  #nowUs = Number.NEGATIVE_INFINITY;

  constructor(config: SequenceBatcherConfig) {
    this.#config = config;
    this.#instances = Array.from({ length: config.instances }, () => this.#newInstance());
  }

  /** Sequences that have a slot. */
  get live(): number {
    return this.#instances.reduce((sum, { lines }) => sum + lines.size, 0);
  }

  /** Sequences that wait for one. */
  get backlog(): number {
    return this.#backlog.size;
  }

  /** The instance that a request would go to; null: it is not known yet, or the request would be refused. */
  instanceFor({ key, start }: SequenceRequest['sequence']): number | null {
    const line = this.#lines.get(key);
    if (line !== undefined) return line.hasSlot ? line.instance : null;
    return start ? this.#freeInstance() : null;
  }

  /** Number of sequences under way, those that wait for a slot among them. */
  get size(): number {
    return this.#lines.size;
  }

  /** A sequence of this key is under way. */
  has(key: SequenceKey): boolean {
    return this.#lines.has(key);
  }

  /** Lets a request wait. @returns why it may not; null: it does */
  add(request: R, nowUs: number): SequenceRefusal | null {
    const { key, start, end } = request.sequence;
    this.#expire(nowUs);
    const known = this.#lines.get(key);
    if (known === undefined && !start) return this.#lost.has(key) ? 'lost' : 'notStarted';
    if (this.#queued.has(request)) throw new TypeError('A request that waits already cannot wait once more.');
    this.#lost.delete(key);
    const line = known ?? new Line<R>(key, this.#numLines++);
    if (known === undefined) this.#lines.set(key, line);
    if (start) line.latest = ++this.#numSequences;
    const deadlineUs = request.timeoutUs > 0 ? this.#nowUs + request.timeoutUs : Number.POSITIVE_INFINITY;
    this.#push(line, {
      request,
      line,
      sequence: line.latest,
      start,
      end,
      enqueuedUs: this.#nowUs,
      deadlineUs,
      order: this.#numRequests++,
      heapIndex: -1,
      link: null,
      isOffered: false,
      isAgain: false,
      ...AS_QUEUED,
      fit: request.fit,
    });
    if (end) this.#close(line);
    if (line.hasSlot) this.#goOn(line);
    else if (line.backlog === null) this.#place(line);
    else this.#expireWith(line);
    return null;
  }

  /**
   * The sender of the request has left. If it waits, its sequence cannot go on: what follows it in the queue,
   * up to the next START, is refused. @returns false where it does not wait: it runs, was refused, or was
   * never there
   */
  remove(request: R, nowUs: number): boolean {
    this.#advance(nowUs);
    const queued = this.#queued.get(request);
    if (queued === undefined || queued.link === null) return false;
    const { line } = queued;
    const behind = queued.link.next;
    this.#drop(queued);
    this.#cut(line, behind?.item ?? null, 'cancelled');
    this.#tidy(line);
    return true;
  }

  /**
   * A request of a running batch is to run once more, in the place of its sequence; called before the batch
   * is settled.
   */
  putAgain(request: R): void {
    const queued = this.#queued.get(request);
    if (queued !== undefined) queued.isAgain = true;
  }

  /** Nothing of the batch runs any more, however it ended. @param isLast it was the last batch of those of its sequences whose requests are not put again */
  settle({ rows }: SequenceBatch<R>, nowUs: number, { isLast = false } = {}): void {
    this.#advance(nowUs);
    for (const { request } of rows) {
      const queued = this.#queued.get(request);
      if (queued === undefined) continue;
      const { line } = queued;
      this.#queued.delete(request);
      line.running = null;
      if (queued.isAgain && line.hasSlot) {
        this.#push(line, {
          ...queued,
          start: false,
          end: false,
          isAgain: false,
          enqueuedUs: this.#nowUs,
        });
      } else if (queued.isAgain) this.#refused.push({ request, reason: 'cancelled' });
      else if (isLast) this.#close(line);
      if (line.hasSlot) this.#tidy(line);
      else this.#tellEnded(line);
    }
  }

  /** One more instance, whose worker does not run yet. @param instance the number of one that was removed, or the next one */
  addInstance(instance: number): void {
    this.#instances[instance] = this.#newInstance();
  }

  /** The instance keeps the sequences that it has until they end, and gets no other one. */
  retireInstance(instance: number): void {
    this.#instances[instance]!.isLeaving = true;
  }

  /** Sequences that have a slot of the instance. */
  sequencesOf(instance: number): number {
    return this.#instances[instance]!.lines.size;
  }

  #newInstance(): InstanceState<R> {
    return {
      isRunning: false,
      isLeaving: false,
      free: new FreeSlots(this.#config.slots),
      lines: new Map(),
      offered: this.#strategy(),
    };
  }

  /** The instance's worker runs, or is lost with all that it held; batches that it had are settled before. At first none runs. */
  noteInstance(instance: number, isRunning: boolean, nowUs: number): void {
    this.#advance(nowUs);
    const state = this.#instances[instance]!;
    if (state.isRunning && !isRunning) this.#lose(state);
    state.isRunning = isRunning;
    this.#refill();
  }

  /**
   * The next batch of one of the instances that are free, in the order in which they are named; it is to be settled.
   * @param isDraining nothing will come any more, so nothing is worth waiting for
   */
  next(nowUs: number, free: readonly number[], isDraining = false): NextSequenceBatch<R> {
    this.#expire(nowUs);
    if (isDraining && this.#backlog.size > 0) this.#endIdle();
    let dueUs = Number.POSITIVE_INFINITY;
    let batch: SequenceBatch<R> | null = null;
    for (const instance of free) {
      const { offered } = this.#instances[instance]!;
      const taken = offered.take(this.#nowUs, isDraining);
      if (taken === null) {
        dueUs = Math.min(dueUs, offered.dueUs);
        continue;
      }
      const rows = taken.requests.map((queued, i): SequenceRow<R> => {
        const { request, sequence, start, end } = queued;
        return { request, slot: taken.slotOf(i), sequence, start, end };
      });
      for (const queued of taken.requests) this.#run(queued);
      batch = { instance, slots: taken.slots, rows };
      break;
    }
    const wakeAtUs = Math.min(this.#deadlines.first?.deadlineUs ?? Number.POSITIVE_INFINITY, dueUs);
    return {
      batch,
      refused: this.#refused.splice(0),
      ended: this.#ended.splice(0),
      wakeAtUs: wakeAtUs === Number.POSITIVE_INFINITY ? null : wakeAtUs,
    };
  }

  /** When the instance has a batch if it is free: `nowUs` or earlier where it does now; Infinity: never, unless something comes or ends. */
  goesAtUs(nowUs: number, instance: number, isDraining = false): number {
    this.#expire(nowUs);
    if (isDraining && this.#backlog.size > 0) this.#endIdle();
    return this.#instances[instance]!.offered.goesAtUs(this.#nowUs, isDraining);
  }

  #strategy(): InstanceSlots<R> {
    const { strategy } = this.#config;
    return strategy.kind === 'direct' ? new DirectSlots(strategy) : new OldestCandidates(strategy);
  }

  #advance(nowUs: number): void {
    // A clock that runs backwards stands still here.
    this.#nowUs = Math.max(this.#nowUs, nowUs);
  }

  #push(line: Line<R>, queued: Queued<R>): void {
    queued.isOffered = false;
    queued.link = line.queue.push(queued);
    if (queued.deadlineUs !== Number.POSITIVE_INFINITY) line.impatient.add(queued);
    this.#queued.set(queued.request, queued);
  }

  /** Takes a request out of its line, in which it waits. */
  #drop(queued: Queued<R>): void {
    const { line, request, isOffered } = queued;
    if (isOffered) this.#instances[line.instance]!.offered.withdraw(queued);
    line.queue.remove(queued.link!);
    line.impatient.remove(queued);
    this.#queued.delete(request);
  }

  /** Refuses the requests of a line from this one on, up to the next START, without which the line is over. null: there are none. */
  #cut(line: Line<R>, from: Queued<R> | null, reason: SequenceReason): void {
    let queued = from;
    while (queued !== null && !queued.start) {
      const next: Queued<R> | null = queued.link!.next?.item ?? null;
      this.#drop(queued);
      this.#refused.push({ request: queued.request, reason });
      queued = next;
    }
    if (queued === null) this.#close(line);
  }

  /** No further request comes to the line. */
  #close(line: Line<R>): void {
    line.isOpen = false;
    if (this.#lines.get(line.key) === line) this.#lines.delete(line.key);
  }

  /** A new line, or one whose instance was lost. */
  #place(line: Line<R>): void {
    const instance = this.#freeInstance();
    if (instance !== null) this.#give(line, instance);
    else {
      line.backlog = this.#backlog.push(line);
      this.#expireWith(line);
    }
  }

  /** The running instance with the lowest free slot; null: no slot is free. */
  #freeInstance(): number | null {
    let [best, lowest] = [-1, Number.POSITIVE_INFINITY];
    for (const [i, { isRunning, isLeaving, free }] of this.#instances.entries()) {
      if (isRunning && !isLeaving && free.lowest < lowest) [best, lowest] = [i, free.lowest];
    }
    return best < 0 ? null : best;
  }

  #give(line: Line<R>, instance: number): void {
    const { free, lines } = this.#instances[instance]!;
    line.instance = instance;
    line.slot = free.take();
    lines.set(line.slot, line);
    this.#goOn(line);
  }

  /** Lines of the backlog come to slots that are free. */
  #refill(): void {
    for (let first = this.#backlog.first; first !== null; first = this.#backlog.first) {
      const instance = this.#freeInstance();
      if (instance === null) return;
      this.#leaveBacklog(first.item);
      this.#give(first.item, instance);
    }
  }

  #leaveBacklog(line: Line<R>): void {
    this.#backlog.remove(line.backlog!);
    line.backlog = null;
    this.#setDeadline(line, Number.POSITIVE_INFINITY);
  }

  /** Of a line with a slot: its first request may run, or its idle time begins. */
  #goOn(line: Line<R>): void {
    if (line.running !== null) return;
    const first = line.queue.first?.item;
    this.#setDeadline(
      line,
      first === undefined ? this.#nowUs + this.#config.maxIdleUs : Number.POSITIVE_INFINITY,
    );
    if (first === undefined || first.isOffered) return;
    first.isOffered = true;
    this.#instances[line.instance]!.offered.offer(first, this.#nowUs);
  }

  /** Whatever happened to the line: it goes on, or its slot or place in the backlog is given back. */
  #tidy(line: Line<R>): void {
    const isOver = !line.isOpen && line.queue.size === 0;
    if (line.hasSlot && isOver) this.#leave(line);
    else if (line.hasSlot) this.#goOn(line);
    else if (line.backlog !== null && isOver) this.#leaveBacklog(line);
    else if (line.backlog !== null) this.#expireWith(line);
  }

  /** The line is over, but for what runs; its slot is for the backlog. */
  #leave(line: Line<R>): void {
    this.#freeSlot(line);
    this.#refill();
  }

  #freeSlot(line: Line<R>): void {
    const { free, lines } = this.#instances[line.instance]!;
    lines.delete(line.slot);
    free.give(line.slot);
    line.slot = -1;
    this.#setDeadline(line, Number.POSITIVE_INFINITY);
    if (line.running === null) this.#tellEnded(line);
  }

  #tellEnded(line: Line<R>): void {
    if (line.held !== null) this.#ended.push({ instance: line.instance, sequence: line.held });
    line.held = null;
  }

  /** An instance has it now. */
  #run(queued: Queued<R>): void {
    const { line, sequence, end } = queued;
    queued.isOffered = false;
    line.queue.remove(queued.link!);
    line.impatient.remove(queued);
    queued.link = null;
    line.running = queued;
    if (line.held !== sequence) this.#tellEnded(line);
    // After END the instance forgets the state by itself.
    line.held = end ? null : sequence;
    if (!line.isOpen && line.queue.size === 0) this.#leave(line);
  }

  #lose(state: InstanceState<R>): void {
    const lines = [...state.lines.values()].sort((one, other) => one.slot - other.slot);
    state.offered = this.#strategy();
    state.lines.clear();
    state.free.reset();
    state.isRunning = false;
    const before = this.#backlog.first;
    for (const line of lines) {
      const wasOpen = line.isOpen;
      const first = line.queue.first?.item;
      if (first !== undefined) first.isOffered = false;
      this.#setDeadline(line, Number.POSITIVE_INFINITY);
      line.slot = -1;
      if (line.held !== null) this.#cut(line, line.queue.first?.item ?? null, 'lost');
      line.held = null;
      if (wasOpen && !line.isOpen) this.#lost.add(line.key);
      if (line.queue.size === 0) continue;
      // What had a slot came before all that had none.
      line.backlog = this.#backlog.insert(line, before);
      this.#expireWith(line);
    }
  }

  /** Sets the time of a line of the backlog, which is that of the request that may wait least. */
  #expireWith(line: Line<R>): void {
    this.#setDeadline(line, line.impatient.first?.deadlineUs ?? Number.POSITIVE_INFINITY);
  }

  #setDeadline(line: Line<R>, deadlineUs: number): void {
    if (line.deadlineUs === deadlineUs) return;
    this.#deadlines.remove(line);
    line.deadlineUs = deadlineUs;
    if (deadlineUs !== Number.POSITIVE_INFINITY) this.#deadlines.add(line);
  }

  #expire(nowUs: number): void {
    this.#advance(nowUs);
    for (let line = this.#deadlines.first; line !== null; line = this.#deadlines.first) {
      if (line.deadlineUs > this.#nowUs) return;
      this.#close(line);
      if (line.hasSlot) this.#leave(line);
      else {
        this.#leaveBacklog(line);
        for (const { item } of links(line.queue)) {
          this.#drop(item);
          this.#refused.push({ request: item.request, reason: 'expired' });
        }
      }
    }
  }

  /** Ends the sequences that wait for their clients: none of them will continue. */
  #endIdle(): void {
    for (const { lines } of this.#instances) {
      for (const line of [...lines.values()]) {
        if (!line.isIdle) continue;
        this.#close(line);
        this.#freeSlot(line);
      }
    }
    this.#refill();
  }
}

/** A line is a queue of single rows for a dynamic batcher. */
const AS_QUEUED = { rows: 1, priority: 0, timeoutUs: 0 } as const;

function* links<T>(chain: Chain<T>): Iterable<{ item: T }> {
  for (let link = chain.first; link !== null; link = link.next) yield link;
}
