import { CacheFollower } from '../nats/cache-follower.js';
import type { CacheChange } from '../nats/cache-messages.js';
import type { RoutingPort } from '../nats/gateway-port.js';
import type { WorkItem } from '../nats/messages.js';
import { namesOfItem, type RequestNames } from '../nats/request-names.js';
import type { RosterPool, RosterWorker } from '../nats/roster-pool.js';
import { roomFor } from '../nats/worker-port.js';
import { AHEAD_PER_WORKER, offersFor } from '../nats/worker-roster.js';
import { BlockBound } from '../routing/block-index.js';
import { CacheRouter, type Found } from '../routing/cache-router.js';
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
/** Each request that runs at the same time costs about as much as a few blocks of the prompt. */
const PACE = { blockTime: 1, requestTime: 4 };

/** A worker, as far as requests can be sent to it. */
interface Direct {
  worker: RosterWorker;
  pool: RosterPool;
  /** Of its pool. */
  router: CacheRouter;
  follower: CacheFollower;
  /** Requests on their way there. */
  inFlight: number;
  /** Those, and the ones there that have no token yet. */
  unstarted: number;
  /** It has refused a request or has not answered, and has sent no beat since. */
  isFull: boolean;
  isMute: boolean;
}

/** Where a request of this gateway is. */
interface Place {
  direct: Direct;
  request: QueuedRequest;
  cachedBlocks: number;
  blocks: number;
  isInFlight: boolean;
}

/**
 * Sends requests where most of them is cached and little is to do: what workers report about their caches,
 * what they have to do, and what became of each request that was sent to one.
 *
 *   onBeat, onCache --> CacheFollower, of each worker --> CacheRouter <-- choose: the cheapest one with room
 *                              '-- CacheAsker: what is missing                |
 *                                                                send --> worker: taken, or not: then the stream has it
 *
 * No request depends on it to be answered: where it chooses no worker, or its choice fails, the stream serves
 * the request as usual.
 */
export class CacheRoutes {
  readonly counts = new RoutingCounts();
  readonly #options: CacheRoutesOptions;
  /** Called with a worker that may be offered more or fewer requests than before. */
  readonly #onRoom: (worker: RosterWorker) => void;
  readonly #bound: BlockBound;
  /** A router for each pool, with those of its workers that report their caches. */
  readonly #routers = new Map<RosterPool, CacheRouter>();
  readonly #asker: CacheAsker;
  readonly #workers = new Map<string, Direct>();
  readonly #places = new Map<string, Place>();

  constructor(options: CacheRoutesOptions, onRoom: (worker: RosterWorker) => void) {
    this.#options = options;
    this.#onRoom = onRoom;
    this.#bound = new BlockBound(options.maxBlocks ?? MAX_BLOCKS);
    this.#asker = new CacheAsker(options.port);
  }

  /** Blocks that are known, over all workers. */
  get knownBlocks(): number {
    return this.#bound.used;
  }

  // What workers report.

  /** A worker has sent a beat. */
  onBeat(worker: RosterWorker): void {
    const { id, held, cacheNumber } = worker;
    if (cacheNumber === null || this.#workers.get(id)?.pool !== worker.pool) this.lose(id);
    if (cacheNumber === null) {
      this.#onRoom(worker);
      return;
    }
    const direct = this.#workers.get(id) ?? this.#add(worker);
    const { router, follower } = direct;
    direct.isFull = false;
    direct.isMute = false;
    follower.onBeat(cacheNumber);
    router.noteOthers(id, Math.max(0, held - router.requestsAt(id)));
    this.#asker.onBeat(id, follower);
    this.#onRoom(worker);
  }

  #add(worker: RosterWorker): Direct {
    const { id, pool } = worker;
    const router = this.#routers.get(pool) ?? new CacheRouter({ ...PACE, bound: this.#bound });
    this.#routers.set(pool, router);
    router.add(id);
    const follower = new CacheFollower(router.blocksOf(id));
    const counts = { inFlight: 0, unstarted: 0, isFull: false, isMute: false };
    const direct = { worker, pool, router, follower, ...counts };
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
    const direct = this.#workers.get(id);
    if (direct === undefined) return;
    const { router, pool } = direct;
    this.#workers.delete(id);
    this.#asker.forget(id);
    for (const request of router.remove(id)) {
      // Its answer no longer counts, even if a worker of this name comes again.
      this.#places.get(request)!.isInFlight = false;
      this.#places.delete(request);
    }
    if (router.size === 0) this.#routers.delete(pool);
  }

  // Where requests go.

  /** Requests that a worker has room for, as far as is known here. */
  #roomAt({ worker: { places, held }, inFlight, unstarted, isFull, isMute }: Direct): number {
    if (isFull || isMute) return 0;
    return Math.max(0, roomFor({ places, held: held + inFlight, waiting: unstarted }));
  }

  /**
   * Notes whether a worker has room: to be called whenever that may have changed, or what the roster knows of it.
   * @returns number of requests that it is offered, in the stream or directly. Where it has no room, and none
   * of this gateway's requests is there whose end would show it, one request waits for it in the stream,
   * among those of other gateways.
   */
  reckon(worker: RosterWorker): number {
    const direct = this.#workers.get(worker.id);
    if (direct === undefined) return offersFor(worker);
    const { router, isFull, isMute } = direct;
    const room = this.#roomAt(direct);
    router.setOpen(worker.id, room > 0 && !worker.isLeaving);
    if (room > 0) return room;
    const hasOwn = !isFull && !isMute && router.requestsAt(worker.id) > 0;
    return hasOwn ? 0 : AHEAD_PER_WORKER;
  }

  /**
   * The worker that the request goes to; null: any worker may take it. Every choice is to be followed by
   * `send`.
   * @param among pools that can answer it
   */
  choose(request: QueuedRequest, among: readonly RosterPool[]): { worker: string; pool: RosterPool } | null {
    const [first] = among;
    if (first === undefined) return null;
    // A worker of an older version costs what an empty cache costs, and is reached through the stream.
    if (among.some(({ sums }) => sums.streamFree > 0)) return null;
    const hashes = hashesOf(request.request, first.model);
    this.#end(request.id);
    const mayHave = (worker: string) => worker !== request.avoids;
    let best: { pool: RosterPool; router: CacheRouter; found: Found } | null = null;
    for (const pool of among) {
      const router = this.#routers.get(pool);
      if (router === undefined || !isHashedAlike(pool.model, first.model, request.request)) continue;
      const found = router.find(hashes, mayHave);
      if (found !== null && (best === null || found.cost < best.found.cost)) best = { pool, router, found };
    }
    if (best === null) return null;
    const { pool, router, found } = best;
    router.begin({ id: request.id, hashes }, found);
    const { worker, cachedBlocks } = found;
    const direct = this.#workers.get(worker)!;
    direct.inFlight += 1;
    direct.unstarted += 1;
    const blocks = hashes.length;
    this.#places.set(request.id, { direct, request, cachedBlocks, blocks, isInFlight: true });
    request.awaitsToken = true;
    this.#onRoom(direct.worker);
    return { worker, pool };
  }

  /** Most tokens of the request's prompt that the cache of a worker with room has, among pools that can answer it. */
  cachedTokens({ request }: QueuedRequest, among: readonly RosterPool[]): number {
    const [first] = among;
    if (first === undefined) return 0;
    const hashes = hashesOf(request, first.model);
    let most = 0;
    for (const pool of among) {
      const router = this.#routers.get(pool);
      if (router === undefined || !isHashedAlike(pool.model, first.model, request)) continue;
      most = Math.max(most, router.mostCached(hashes));
    }
    return most * first.model.engine.tokensPerBlock;
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
    if (direct !== undefined) {
      if (answer === 'full') direct.isFull = true;
      if (answer === 'silent' || answer === 'nobody') direct.isMute = true;
      this.#onRoom(direct.worker);
    }
    if (answer !== 'taken' && place !== undefined && this.#places.get(item.id) === place) this.#end(item.id);
    return answer === 'taken';
  }

  /** A request has gone into the stream. */
  noteStreamed(model: string): void {
    this.counts.noteStreamed(model);
  }

  // What becomes of requests.

  /** A worker has the request, however it got it. */
  noteLeased(request: QueuedRequest, worker: RosterWorker | undefined): void {
    const { id } = request;
    if (worker === undefined || this.#places.get(id)?.direct.worker === worker) return;
    this.#end(id);
    const direct = this.#workers.get(worker.id);
    if (direct === undefined) return;
    const hashes = hashesOf(request.request, worker.pool.model);
    direct.router.assign({ id, hashes }, worker.id);
    direct.unstarted += 1;
    const blocks = hashes.length;
    this.#places.set(id, { direct, request, cachedBlocks: 0, blocks, isInFlight: false });
    request.awaitsToken = true;
    this.#onRoom(worker);
  }

  /** True: it was the first one, so that its worker may have room for the next request. */
  noteToken(request: QueuedRequest): boolean {
    const place = this.#places.get(request.id);
    if (place === undefined || !request.awaitsToken) return false;
    const { direct } = place;
    request.awaitsToken = false;
    direct.router.firstToken(request.id);
    direct.unstarted -= 1;
    direct.isFull = false;
    this.#onRoom(direct.worker);
    return true;
  }

  /** The present attempt of a request is over. */
  noteOver(id: string): void {
    const place = this.#places.get(id);
    if (place === undefined) return;
    if (!place.isInFlight) place.direct.isFull = false;
    this.#end(id);
  }

  /** It is not on its way any more. */
  #land(place: Place): void {
    if (!place.isInFlight) return;
    place.isInFlight = false;
    place.direct.inFlight -= 1;
  }

  #end(id: string): void {
    const place = this.#places.get(id);
    if (place === undefined) return;
    const { direct } = place;
    this.#places.delete(id);
    this.#land(place);
    direct.router.end(id);
    if (place.request.awaitsToken) direct.unstarted -= 1;
    place.request.awaitsToken = false;
    this.#onRoom(direct.worker);
  }
}
