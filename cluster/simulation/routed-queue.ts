import { ArrivalQueue, type Waiting } from '../../host/queue/waiting-queue.js';
import { roomFor } from '../nats/worker-port.js';
import type { SimulatedWorker } from './simulated-worker.js';

interface Item extends Waiting {
  request: number;
}

/**
 * The work queue whose gateway sends requests where they are cached, by its rules and without a network: a request waits until a worker
 * has room, and goes to the one of these that the router chooses. No message is lost here, so nothing goes through the stream.
 *
 *   requests -> waiting (gateway) --as long as anybody has room--> the router's choice among those with room
 */
export class RoutedQueue {
  readonly #places: number;
  readonly #waiting = new ArrivalQueue<Item>();
  /** Requests whose worker was lost: they go first. */
  readonly #again: number[] = [];
  /** Names of the workers that have room. */
  readonly #roomy = new Set<string>();
  readonly #route: (request: number, mayHave: (worker: string) => boolean) => SimulatedWorker;

  /** @param places most requests that a worker has at once @param route chooses a worker among those that may have the request */
  constructor(
    places: number,
    route: (request: number, mayHave: (worker: string) => boolean) => SimulatedWorker,
  ) {
    this.#places = places;
    this.#route = route;
  }

  get size(): number {
    return this.#waiting.size + this.#again.length;
  }

  add(request: number, cost: number): void {
    this.#waiting.push({ request, cost, priority: 0.5, key: '', weight: 1 });
  }

  addAgain(request: number): void {
    this.#again.push(request);
  }

  /** A worker has come, got or ended requests, or gone. */
  noteWorker(worker: SimulatedWorker): void {
    const held = worker.requests.size;
    const hasRoom = worker.isUp && roomFor({ places: this.#places, held, waiting: worker.waiting }) > 0;
    if (hasRoom) this.#roomy.add(worker.name);
    else this.#roomy.delete(worker.name);
  }

  /** Calls `give` for each request that a worker gets now. `give` notes the worker. */
  deliver(give: (request: number, worker: SimulatedWorker) => void): void {
    while (this.#roomy.size > 0) {
      const request = this.#again.shift() ?? this.#waiting.take(1)[0]?.request;
      if (request === undefined) return;
      give(
        request,
        this.#route(request, (worker) => this.#roomy.has(worker)),
      );
    }
  }
}
