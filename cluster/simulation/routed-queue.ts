import { roomFor } from '../nats/worker-port.js';
import { WaitingRequests } from './simulated-queue.js';
import type { SimulatedWorker } from './simulated-worker.js';

/**
 * The work queue whose gateway sends requests where they are cached, by its rules and without a network: a request waits until a worker
 * has room, and goes to the one of these that the router chooses. No message is lost here, so nothing goes through the stream.
 *
 *   requests -> waiting (gateway) --as long as anybody has room--> the router's choice among those with room
 */
export class RoutedQueue extends WaitingRequests {
  readonly #places: number;
  /** Names of the workers that have room. */
  readonly #roomy = new Set<string>();
  readonly #route: (request: number, mayHave: (worker: string) => boolean) => SimulatedWorker;

  /** @param places most requests that a worker has at once @param route chooses a worker among those that may have the request */
  constructor(
    places: number,
    route: (request: number, mayHave: (worker: string) => boolean) => SimulatedWorker,
  ) {
    super();
    this.#places = places;
    this.#route = route;
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
      const request = this.next();
      if (request === undefined) return;
      give(
        request,
        this.#route(request, (worker) => this.#roomy.has(worker)),
      );
    }
  }
}
