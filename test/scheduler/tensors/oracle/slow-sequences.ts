import type { SequenceBatcherConfig } from '../../../../scheduler/tensors/sequence-batcher.js';
import { batching, type NamedRequest, queued } from '../../../support/queued-requests.js';
import type { NamedStep } from '../../../support/sequence-timeline.js';
import { SlowBatcher } from './slow-batcher.js';

interface Waiting {
  request: NamedStep;
  sequence: number;
  isStart: boolean;
  isEnd: boolean;
  since: number;
  expires: number;
}

/** The requests of one id, from a START on. */
interface Session {
  id: string;
  waiting: Waiting[];
  running: (Waiting & { isAgain: boolean }) | null;
  isOpen: boolean;
  place: { instance: number; slot: number } | null;
  /** The sequence whose state an instance has, and which instance. */
  held: { instance: number; sequence: number } | null;
  /** Since when it has had nothing to do. */
  idleSince: number;
  sequence: number;
}

/** What one batch is, as text: `#1 A1+ -`. */
export type SlowBatch = { instance: number; text: string; sessions: Session[] };

/**
 * The rules of the sequence batcher once more, without a thought for cost: one list of sessions, searched
 * again for each question. It shares nothing with the batcher but the types.
 */
export class SlowSequences {
  readonly #config: SequenceBatcherConfig;
  /** In the order in which they began. */
  sessions: Session[] = [];
  /** Those without a slot, in the order in which they get one. */
  backlog: Session[] = [];
  readonly #lost = new Set<string>();
  readonly #isRunning: boolean[];
  /** What `oldest` has been offered, by instance. */
  #oldest: { batcher: SlowBatcher; asQueued: Map<Waiting, NamedRequest> }[];
  refused: string[] = [];
  ended: string[] = [];
  #count = 0;
  #now = Number.NEGATIVE_INFINITY;

  constructor(config: SequenceBatcherConfig) {
    this.#config = config;
    this.#isRunning = Array(config.instances).fill(false);
    this.#oldest = this.#isRunning.map(() => this.#candidates());
  }

  add(request: NamedStep, now: number): string | null {
    this.#advance(now);
    const { key: id, start, end } = request.sequence as { key: string; start: boolean; end: boolean };
    let session = this.sessions.find((one) => one.isOpen && one.id === id);
    if (session === undefined && !start) return this.#lost.has(id) ? 'lost' : 'notStarted';
    this.#lost.delete(id);
    if (session === undefined) {
      session = {
        id,
        waiting: [],
        running: null,
        isOpen: true,
        place: null,
        held: null,
        idleSince: 0,
        sequence: 0,
      };
      this.sessions.push(session);
      this.backlog.push(session);
    }
    if (start) session.sequence = ++this.#count;
    const { timeoutUs } = request;
    const expires = timeoutUs > 0 ? this.#now + timeoutUs : Infinity;
    const { sequence } = session;
    session.waiting.push({ request, sequence, isStart: start, isEnd: end, since: this.#now, expires });
    if (end) session.isOpen = false;
    this.#tidy();
    return null;
  }

  remove(request: NamedStep, now: number): boolean {
    this.#now = Math.max(now, this.#now);
    const session = this.sessions.find((one) => one.waiting.some((item) => item.request === request));
    if (session === undefined) return false;
    const at = session.waiting.findIndex((item) => item.request === request);
    session.waiting.splice(at, 1);
    this.#cut(session, at, 'cancelled');
    this.#tidy();
    return true;
  }

  putAgain(request: NamedStep): void {
    for (const { running } of this.sessions) if (running?.request === request) running.isAgain = true;
  }

  settle({ sessions }: SlowBatch, now: number, isLast: boolean): void {
    this.#now = Math.max(now, this.#now);
    for (const session of sessions) {
      const { running } = session;
      session.running = null;
      session.idleSince = this.#now;
      if (running?.isAgain && session.place !== null) {
        session.waiting.push({ ...running, isStart: false, isEnd: false, since: this.#now });
      } else if (running?.isAgain) this.refused.push(`${running.request.name} cancelled`);
      else if (isLast) session.isOpen = false;
      this.#tidy();
    }
  }

  note(instance: number, isRunning: boolean, now: number): void {
    this.#now = Math.max(now, this.#now);
    if (this.#isRunning[instance] && !isRunning) this.#lose(instance);
    this.#isRunning[instance] = isRunning;
    this.#tidy();
  }

  /** The batch that one of the free instances runs now; null: none. */
  take(now: number, free: readonly number[], isDraining: boolean): SlowBatch | null {
    this.#advance(now);
    if (isDraining && this.backlog.length > 0) {
      for (const session of this.sessions) if (this.#isIdle(session)) session.isOpen = false;
      this.#tidy();
    }
    for (const instance of free) {
      const { kind } = this.#config.strategy;
      const batch =
        kind === 'direct' ? this.#direct(instance, isDraining) : this.#ofOldest(instance, isDraining);
      if (batch !== null) return batch;
    }
    return null;
  }

  /** When something happens though no request comes or ends. */
  wake(free: readonly number[]): number | null {
    const times = this.backlog.flatMap(({ waiting }) => waiting.map(({ expires }) => expires));
    for (const session of this.sessions)
      if (this.#isIdle(session)) times.push(session.idleSince + this.#config.maxIdleUs);
    const { strategy } = this.#config;
    for (const instance of free) {
      if (strategy.kind === 'oldest') times.push(this.#oldest[instance]!.batcher.wake(true) ?? Infinity);
      else if (strategy.minimumUtilization > 0)
        times.push(...this.#ready(instance).map(({ waiting }) => waiting[0]!.since + strategy.maxDelayUs));
    }
    const first = Math.min(...times);
    return first === Infinity ? null : first;
  }

  /** Sessions of an instance whose first request may run, by slot. */
  #ready(instance: number): Session[] {
    return this.#of(instance).filter(({ running, waiting }) => running === null && waiting.length > 0);
  }

  #of(instance: number): Session[] {
    return this.sessions
      .filter(({ place }) => place?.instance === instance)
      .sort((one, other) => one.place!.slot - other.place!.slot);
  }

  #direct(instance: number, isDraining: boolean): SlowBatch | null {
    const { strategy } = this.#config;
    if (strategy.kind !== 'direct') return null;
    const ready = this.#ready(instance);
    if (ready.length === 0) return null;
    const first = ready.reduce((oldest, one) =>
      one.waiting[0]!.since < oldest.waiting[0]!.since ? one : oldest,
    );
    const isDue =
      strategy.minimumUtilization === 0 || this.#now >= first.waiting[0]!.since + strategy.maxDelayUs;
    const isFull = ready.length / strategy.maxBatchSize >= strategy.minimumUtilization;
    if (!isDue && !isFull && !isDraining) return null;
    const { fit } = first.waiting[0]!.request;
    const texts = Array<string>(ready.at(-1)!.place!.slot + 1).fill('-');
    const sessions = ready.filter(({ waiting }) => waiting[0]!.request.fit === fit);
    for (const { place, waiting } of sessions) texts[place!.slot] = this.#text(waiting[0]!);
    return this.#run(instance, sessions, texts);
  }

  #ofOldest(instance: number, isDraining: boolean): SlowBatch | null {
    const { batcher, asQueued } = this.#oldest[instance]!;
    const taken = batcher.take(this.#now, isDraining);
    if (taken === null) return null;
    const items = taken.map((one) => [...asQueued].find(([, request]) => request === one)![0]);
    const sessions = items.map((item) => this.sessions.find(({ waiting }) => waiting[0] === item)!);
    return this.#run(
      instance,
      sessions,
      items.map((item) => this.#text(item)),
    );
  }

  #text({ request, sequence, isStart, isEnd }: Waiting): string {
    return `${request.name}:${sequence}${isStart ? '+' : ''}${isEnd ? '-' : ''}`;
  }

  #run(instance: number, sessions: Session[], texts: string[]): SlowBatch {
    for (const session of sessions) {
      const item = session.waiting.shift()!;
      session.running = { ...item, isAgain: false };
      if (session.held !== null && session.held.sequence !== item.sequence) this.#end(session);
      session.held = item.isEnd ? null : { instance, sequence: item.sequence };
      // The slot of one that is over is free for the next batch.
      this.#tidy();
    }
    return { instance, text: `#${instance} ${texts.join(' ')}`, sessions };
  }

  #end(session: Session): void {
    if (session.held !== null) this.ended.push(`#${session.held.instance} ${session.held.sequence}`);
    session.held = null;
  }

  #isIdle({ place, running, waiting }: Session): boolean {
    return place !== null && running === null && waiting.length === 0;
  }

  /** Refuses what waits from a place on up to the next START; without one nothing can follow. */
  #cut(session: Session, from: number, why: string): void {
    while (from < session.waiting.length && !session.waiting[from]!.isStart) {
      this.refused.push(`${session.waiting[from]!.request.name} ${why}`);
      session.waiting.splice(from, 1);
    }
    if (from === session.waiting.length) session.isOpen = false;
  }

  #lose(instance: number): void {
    const lines = this.#of(instance);
    this.#isRunning[instance] = false;
    this.#oldest[instance] = this.#candidates();
    for (const session of lines) {
      const wasOpen = session.isOpen;
      if (session.held !== null) this.#cut(session, 0, 'lost');
      session.held = null;
      session.place = null;
      if (wasOpen && !session.isOpen) this.#lost.add(session.id);
    }
    this.backlog = [...lines.filter(({ waiting }) => waiting.length > 0), ...this.backlog];
    this.#tidy();
  }

  /** Whatever follows from what has happened: who is over leaves, who waits for a slot gets it, who may run is offered. */
  #tidy(): void {
    const isOver = ({ isOpen, waiting }: Session) => !isOpen && waiting.length === 0;
    this.backlog = this.backlog.filter((session) => !isOver(session));
    for (const session of this.sessions) {
      if (!isOver(session)) continue;
      session.place = null;
      if (session.running === null) this.#end(session);
    }
    this.sessions = this.sessions.filter((session) => !isOver(session) || session.running !== null);
    for (let place = this.#freePlace(); place !== null && this.backlog.length > 0; place = this.#freePlace())
      this.backlog.shift()!.place = place;
    this.#offer();
  }

  #freePlace(): { instance: number; slot: number } | null {
    for (let slot = 0; slot < this.#config.slots; slot++) {
      for (let instance = 0; instance < this.#config.instances; instance++) {
        const isTaken = this.sessions.some(
          ({ place }) => place?.instance === instance && place.slot === slot,
        );
        if (this.#isRunning[instance] && !isTaken) return { instance, slot };
      }
    }
    return null;
  }

  #candidates() {
    const { strategy } = this.#config;
    const { maxBatchSize, maxDelayUs } = strategy;
    const preferred = strategy.kind === 'oldest' ? strategy.preferred : [];
    const config = batching({ maxBatchSize, preferred, maxDelayUs });
    return { batcher: new SlowBatcher(config), asQueued: new Map<Waiting, NamedRequest>() };
  }

  /** Hands the first requests that may run to the batchers of `oldest`, and takes back those that are gone. */
  #offer(): void {
    if (this.#config.strategy.kind === 'direct') return;
    for (const [instance, { batcher, asQueued }] of this.#oldest.entries()) {
      const ready = new Set(this.#ready(instance).map(({ waiting }) => waiting[0]!));
      for (const [item, request] of asQueued) {
        if (ready.has(item)) continue;
        batcher.remove(request);
        asQueued.delete(item);
      }
      for (const item of ready) {
        if (asQueued.has(item)) continue;
        const request = queued(item.request.name, 1, { fit: item.request.fit });
        asQueued.set(item, request);
        batcher.add(request, this.#now);
      }
    }
  }

  #advance(now: number): void {
    this.#now = Math.max(now, this.#now);
    const { maxIdleUs } = this.#config;
    // One after the other, since each may let another one begin.
    for (;;) {
      const due = [
        ...this.sessions
          .filter((one) => this.#isIdle(one))
          .map((session) => ({ session, at: session.idleSince + maxIdleUs })),
        ...this.backlog.map((session) => ({
          session,
          at: Math.min(...session.waiting.map(({ expires }) => expires)),
        })),
      ].filter(({ at }) => at <= this.#now);
      const number = (one: Session) => this.sessions.indexOf(one);
      due.sort((one, other) => one.at - other.at || number(one.session) - number(other.session));
      const [first] = due;
      if (first === undefined) return;
      const { session } = first;
      session.isOpen = false;
      if (session.place === null)
        for (const { request } of session.waiting.splice(0)) this.refused.push(`${request.name} expired`);
      this.#tidy();
    }
  }
}
