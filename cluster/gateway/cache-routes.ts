import { CacheFollower } from '../nats/cache-follower.js';
import type { CacheChange } from '../nats/cache-messages.js';
import type { RoutingPort } from '../nats/gateway-port.js';
import type { WorkItem } from '../nats/messages.js';
import { namesOfItem, type RequestNames } from '../nats/request-names.js';
import { roomFor } from '../nats/worker-port.js';
import { AHEAD_PER_WORKER, offersFor, type RosterWorker } from '../nats/worker-roster.js';
import { CacheRouter } from '../routing/cache-router.js';
import type { DirectAnswer } from '../routing/model-routing.js';
import { CacheAsker } from './cache-asker.js';
import { hashesOf, isHashedAlike } from './prompt-blocks.js';
import type { QueuedRequest } from './queued-request.js';
import type { RequestTrace } from './request-trace.js';
import { RoutingCounts } from './routing-counts.js';

/** A request as it was sent to a worker. */
export interface Routed extends RequestNames {
  worker: string;
  /** Leading blocks of the prompt that the worker has, or will have computed for others before, and all that a cache could have. */
  cachedBlocks: number;
  blocks: number;
  answer: DirectAnswer;
}

export interface CacheRoutesOptions {
  port: RoutingPort;
  /** Most blocks that are noted, over all workers; default 4 million, some 250 MB. */
  maxBlocks?: number;
  /** Called with what became of each choice. */
  onRouted?: (routed: Routed) => void;
}

const MAX_BLOCKS = 4_000_000;
/** A request beside another one costs it about as much as a few blocks of its prompt. */
const PACE = { blockTime: 1, requestTime: 4 };

/** A worker, as far as requests can be sent to it. */
interface Direct {
  follower: CacheFollower;
  /** Requests on their way there. */
  inFlight: number;
  /** Those, and the ones there that have no token yet. */
  unstarted: number;
  /** It has refused one, or has not answered, and was not heard of since then. */
  isFull: boolean;
  isMute: boolean;
}

/** Where a request of this gateway is. */
interface Place {
  worker: string;
  cachedBlocks: number;
  blocks: number;
  isInFlight: boolean;
  hasToken: boolean;
}

/**
 * Sends requests where most of them is cached and little is to do: what workers tell of their caches, what they have to do, and
 * what became of each request that was sent to one.
 *
 *   onBeat, onCache --> CacheFollower, of each worker --> CacheRouter <-- choose: the cheapest one with room
 *                              '-- CacheAsker: what is missing                |
 *                                                                send --> worker: taken, or not: then the stream has it
 *
 * Nothing depends on it that a request is answered: where it chooses nobody, or in vain, the stream does as without it.
 */
export class CacheRoutes {
  readonly counts = new RoutingCounts();
  readonly #options: CacheRoutesOptions;
  readonly #router: CacheRouter;
  readonly #asker: CacheAsker;
  readonly #workers = new Map<string, Direct>();
  readonly #places = new Map<string, Place>();

  constructor(options: CacheRoutesOptions) {
    this.#options = options;
    this.#router = new CacheRouter({ ...PACE, maxBlocks: options.maxBlocks ?? MAX_BLOCKS });
    this.#asker = new CacheAsker(options.port);
  }

  /** Blocks that are known, over all workers. */
  get knownBlocks(): number {
    return this.#router.knownBlocks;
  }

  // What workers tell.

  /** A worker has told of itself. */
  onBeat({ id, held, cacheNumber }: RosterWorker): void {
    if (cacheNumber === null) {
      this.lose(id);
      return;
    }
    const direct = this.#workers.get(id) ?? this.#add(id);
    direct.isFull = false;
    direct.isMute = false;
    direct.follower.onBeat(cacheNumber);
    this.#router.noteOthers(id, Math.max(0, held - this.#router.requestsAt(id)));
    this.#asker.onBeat(id, direct.follower);
  }

  #add(id: string): Direct {
    this.#router.add(id);
    const follower = new CacheFollower(this.#router.blocksOf(id));
    const direct = { follower, inFlight: 0, unstarted: 0, isFull: false, isMute: false };
    this.#workers.set(id, direct);
    return direct;
  }

  onCache(change: CacheChange): void {
    const follower = this.#workers.get(change.worker)?.follower;
    if (follower === undefined) return;
    follower.onChange(change);
    this.#asker.look(change.worker, follower);
  }

  /** A worker is lost, or has ended. */
  lose(id: string): void {
    if (!this.#workers.delete(id)) return;
    this.#asker.forget(id);
    for (const request of this.#router.remove(id)) {
      // Its answer counts for nobody, also where a worker of this name comes again.
      this.#places.get(request)!.isInFlight = false;
      this.#places.delete(request);
    }
  }

  // Where requests go.

  /** Requests that a worker has room for, as far as is known here. */
  #roomAt({ places, held }: RosterWorker, { inFlight, unstarted, isFull, isMute }: Direct): number {
    if (isFull || isMute) return 0;
    return Math.max(0, roomFor({ places, held: held + inFlight, waiting: unstarted }));
  }

  /**
   * Number of requests that one worker is offered, in the stream or directly. Where it has no room, and none of this gateway's requests
   * is there whose end would tell, one request waits for it in the stream, among those of other gateways.
   */
  offersFor(worker: RosterWorker): number {
    const direct = this.#workers.get(worker.id);
    if (direct === undefined) return offersFor(worker);
    const room = this.#roomAt(worker, direct);
    if (room > 0) return room;
    const hasOwn = !direct.isFull && !direct.isMute && this.#router.requestsAt(worker.id) > 0;
    return hasOwn ? 0 : AHEAD_PER_WORKER;
  }

  /** The worker that the request goes to; null: to whoever takes it. Every choice is to be followed by `send`. @param among those that can answer it */
  choose(request: QueuedRequest, among: readonly RosterWorker[]): string | null {
    const [first] = among;
    if (first === undefined) return null;
    const able = new Map<string, RosterWorker>();
    for (const worker of among) {
      const direct = this.#workers.get(worker.id);
      // One of an older version costs what an empty cache costs, and is reached through the stream.
      if (direct === undefined) {
        if (worker.held < worker.places) return null;
      } else if (
        worker.id !== request.avoids &&
        this.#roomAt(worker, direct) > 0 &&
        isHashedAlike(worker.model, first.model, request.request)
      )
        able.set(worker.id, worker);
    }
    if (able.size === 0) return null;
    const hashes = hashesOf(request.request, first.model);
    this.#end(request.id);
    const found = this.#router.route({ id: request.id, hashes }, (worker) => able.has(worker));
    if (found === null) return null;
    const { worker, cachedBlocks } = found;
    const direct = this.#workers.get(worker)!;
    direct.inFlight += 1;
    direct.unstarted += 1;
    const blocks = hashes.length;
    this.#places.set(request.id, { worker, cachedBlocks, blocks, isInFlight: true, hasToken: false });
    return worker;
  }

  /** Most tokens of the request's prompt that the cache of a worker with room has, among those that can answer it. */
  cachedTokens({ request }: QueuedRequest, among: readonly RosterWorker[]): number {
    const [first] = among;
    if (first === undefined) return 0;
    const hasRoom = (worker: RosterWorker) => {
      const direct = this.#workers.get(worker.id);
      return direct !== undefined && this.#roomAt(worker, direct) > 0;
    };
    const able = among.filter((one) => hasRoom(one) && isHashedAlike(one.model, first.model, request));
    const names = new Set(able.map(({ id }) => id));
    const blocks = this.#router.mostCached(hashesOf(request, first.model), (worker) => names.has(worker));
    return blocks * first.model.engine.tokensPerBlock;
  }

  /** Sends a request to the worker that was chosen for it. True: it has it. */
  async send(
    model: string,
    worker: string,
    item: WorkItem,
    trace: RequestTrace | null = null,
  ): Promise<boolean> {
    const place = this.#places.get(item.id);
    const answer = await this.#options.port.direct(worker, item);
    this.counts.note(model, answer, place?.cachedBlocks ?? 0);
    if (place !== undefined) {
      trace?.onRouted(answer, place);
      const { cachedBlocks, blocks } = place;
      this.#options.onRouted?.({ ...namesOfItem(item), worker, cachedBlocks, blocks, answer });
      this.#land(place);
    }
    const direct = this.#workers.get(worker);
    if (direct !== undefined && answer === 'full') direct.isFull = true;
    if (direct !== undefined && (answer === 'silent' || answer === 'nobody')) direct.isMute = true;
    if (answer !== 'taken' && place !== undefined && this.#places.get(item.id) === place) this.#end(item.id);
    return answer === 'taken';
  }

  /** A request has gone into the stream. */
  noteStreamed(model: string): void {
    this.counts.noteStreamed(model);
  }

  // What becomes of requests.

  /** A worker has the request, however it got it. */
  noteLeased({ id, request }: QueuedRequest, worker: RosterWorker | undefined): void {
    if (worker === undefined || this.#places.get(id)?.worker === worker.id) return;
    this.#end(id);
    const direct = this.#workers.get(worker.id);
    if (direct === undefined) return;
    const hashes = hashesOf(request, worker.model);
    this.#router.assign({ id, hashes }, worker.id);
    direct.unstarted += 1;
    const place = { worker: worker.id, cachedBlocks: 0, blocks: hashes.length };
    this.#places.set(id, { ...place, isInFlight: false, hasToken: false });
  }

  /** True: it was the first one, so that its worker may have room for the next request. */
  noteToken(id: string): boolean {
    const place = this.#places.get(id);
    if (place === undefined || place.hasToken) return false;
    place.hasToken = true;
    this.#router.firstToken(id);
    const direct = this.#workers.get(place.worker);
    if (direct === undefined) return false;
    direct.unstarted -= 1;
    direct.isFull = false;
    return true;
  }

  /** The present attempt of a request is over. */
  noteOver(id: string): void {
    const place = this.#places.get(id);
    if (place === undefined) return;
    const direct = this.#workers.get(place.worker);
    if (direct !== undefined && !place.isInFlight) direct.isFull = false;
    this.#end(id);
  }

  /** It is not on its way any more. */
  #land(place: Place): void {
    if (!place.isInFlight) return;
    place.isInFlight = false;
    const direct = this.#workers.get(place.worker);
    if (direct !== undefined) direct.inFlight -= 1;
  }

  #end(id: string): void {
    const place = this.#places.get(id);
    if (place === undefined) return;
    this.#places.delete(id);
    this.#land(place);
    this.#router.end(id);
    const direct = this.#workers.get(place.worker);
    if (direct !== undefined && !place.hasToken) direct.unstarted -= 1;
  }
}
