import { ArrivalQueue, type Waiting } from '../../host/queue/waiting-queue.js';
import { roomFor } from '../nats/worker-port.js';
import { offersFor } from '../nats/worker-roster.js';
import type { SimulatedWorker } from './simulated-worker.js';

interface Item extends Waiting {
  request: number;
}

/** Requests that wait at a gateway. */
export class WaitingRequests {
  readonly #waiting = new ArrivalQueue<Item>();
  /** Requests whose worker was lost: they go first. */
  readonly #again: number[] = [];

  get size(): number {
    return this.#waiting.size + this.#again.length;
  }

  add(request: number, cost: number): void {
    this.#waiting.push({ request, cost, priority: 0.5, key: '', weight: 1 });
  }

  addAgain(request: number): void {
    this.#again.push(request);
  }

  protected next(): number | undefined {
    return this.#again.shift() ?? this.#waiting.take(1)[0]?.request;
  }
}

/** A worker's question for a number of requests. */
export interface Ask {
  worker: SimulatedWorker;
  life: number;
  /** Those of them that have not come; 0: the question is over. */
  count: number;
}

/**
 * The work queue between one gateway and its workers, by the rules of both ends and without a network: the gateway offers what its workers can
 * take and one request more for each, a worker asks for as many as it has room for, and the stream gives one request to each question in turn.
 * What a question has not brought when it expires is asked for again.
 *
 *   requests -> waiting (gateway) --as many as offersFor says--> stream --to the worker that asked--> workers
 */
export class SimulatedQueue extends WaitingRequests {
  readonly #places: number;
  /** Offered and not taken, the oldest first. */
  readonly #stream: number[] = [];
  readonly #onAsk: (ask: Ask) => void;
  /** Questions in their turn; those before the first one are over. */
  #asks: Ask[] = [];
  #firstAsk = 0;
  readonly #asked = new Map<SimulatedWorker, number>();
  /** Offers for which each worker that is there counts, and their sum. */
  readonly #shares = new Map<SimulatedWorker, number>();
  #wanted = 0;

  /** @param places most requests that a worker has at once @param onAsk called with each question; `expire` is to be called later */
  constructor(places: number, onAsk: (ask: Ask) => void) {
    super();
    this.#places = places;
    this.#onAsk = onAsk;
  }

  override get size(): number {
    return super.size + this.#stream.length;
  }

  /** A worker has come, got or ended requests, or gone. */
  noteWorker(worker: SimulatedWorker): void {
    const before = this.#shares.get(worker) ?? 0;
    const now = worker.isUp ? offersFor({ places: this.#places, held: worker.requests.size }) : 0;
    this.#wanted += now - before;
    this.#shares.set(worker, now);
    if (!worker.isUp) {
      this.#asked.delete(worker);
      return;
    }
    const room = roomFor({ places: this.#places, held: worker.requests.size, waiting: worker.waiting });
    const asked = this.#asked.get(worker) ?? 0;
    if (asked >= room) return;
    const ask = { worker, life: worker.life, count: room - asked };
    this.#asks.push(ask);
    this.#asked.set(worker, room);
    this.#onAsk(ask);
  }

  /** The time of a question is over. True: its worker is to be noted, once for all of its questions that expire together. */
  expire(ask: Ask): boolean {
    const { worker, life, count } = ask;
    if (!worker.isUp || worker.life !== life || count === 0) return false;
    ask.count = 0;
    this.#asked.set(worker, this.#asked.get(worker)! - count);
    return true;
  }

  /** Calls `give` for each request that a worker gets now. `give` notes the worker. */
  deliver(give: (request: number, worker: SimulatedWorker) => void): void {
    for (;;) {
      this.#offer();
      if (this.#stream.length === 0) return;
      const ask = this.#nextAsk();
      if (ask === null) return;
      this.#asked.set(ask, this.#asked.get(ask)! - 1);
      give(this.#stream.shift()!, ask);
    }
  }

  #offer(): void {
    while (this.#stream.length < this.#wanted) {
      const next = this.next();
      if (next === undefined) return;
      this.#stream.push(next);
    }
  }

  /** The worker of the next question, which goes to the end of the row if it asks for more. */
  #nextAsk(): SimulatedWorker | null {
    while (this.#firstAsk < this.#asks.length) {
      const ask = this.#asks[this.#firstAsk]!;
      this.#firstAsk += 1;
      if (2 * this.#firstAsk > this.#asks.length) {
        this.#asks = this.#asks.slice(this.#firstAsk);
        this.#firstAsk = 0;
      }
      if (!ask.worker.isUp || ask.worker.life !== ask.life || ask.count === 0) continue;
      ask.count -= 1;
      if (ask.count > 0) this.#asks.push(ask);
      return ask.worker;
    }
    return null;
  }
}
