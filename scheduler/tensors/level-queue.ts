import { Chain, type Link } from './chain.js';
import { type Dated, DeadlineHeap } from './deadline-heap.js';
import { deadlineOf, levelOf, policyOf, type QueueLevels, type QueuePolicy } from './queue-policy.js';

/** What the queue reads of a request. */
export interface Levelled {
  /** 1 is the highest level; 0: the default one. */
  readonly priority: number;
  /** Microseconds that it may wait, where its level lets it say so; 0: the level's timeout. */
  readonly timeoutUs: number;
}

/** A request that waits. */
export interface Place<R> extends Dated {
  readonly request: R;
  readonly enqueuedUs: number;
  readonly level: Level<R>;
  /** The chain of its level in which it stands, and where. */
  chain: Chain<Place<R>>;
  link: Link<Place<R>>;
  readonly arrival: Link<Place<R>>;
}

interface Level<R> {
  readonly number: number;
  readonly policy: QueuePolicy;
  readonly fresh: Chain<Place<R>>;
  /** Those that expired under DELAY, by the time at which they did. */
  readonly delayed: Chain<Place<R>>;
}

/**
 * Requests that wait, in the order in which they may run:
 *
 *   level 1   fresh  A B C    delayed  D        by level, the highest first;
 *   level 2   fresh  E F      delayed           in a level those that have not expired in order of arrival,
 *   level 7   fresh  G        delayed  H I      followed by those that have
 *
 *   order     A B C D E F G H I
 *
 * Only levels with waiting requests exist, since there may be as many as numbers. Adding and removing take a
 * fixed number of steps, and with timeouts as many more as the logarithm of those that wait.
 */
export class LevelQueue<R extends Levelled> {
  readonly #config: QueueLevels;
  /** The highest first, none empty. */
  readonly #levels: Level<R>[] = [];
  readonly #places = new Map<R, Place<R>>();
  readonly #arrivals = new Chain<Place<R>>();
  readonly #deadlines = new DeadlineHeap<Place<R>>();
  #order = 0;
  /** Of those who are put back: negative, so that they come before all others. */
  #frontOrder = 0;

  constructor(config: QueueLevels) {
    this.#config = config;
  }

  get size(): number {
    return this.#arrivals.size;
  }

  /** Oldest enqueue time; Infinity if no request waits. */
  get oldestUs(): number {
    return this.#arrivals.first?.item.enqueuedUs ?? Number.POSITIVE_INFINITY;
  }

  /** When the next request expires; Infinity: none will. */
  get nearestDeadlineUs(): number {
    return this.#deadlines.first?.deadlineUs ?? Number.POSITIVE_INFINITY;
  }

  /** True where the level on which the request would wait takes no more. */
  isFullFor(request: R): boolean {
    const number = levelOf(this.#config, request.priority);
    const { maxQueueSize } = policyOf(this.#config, number);
    if (maxQueueSize === 0) return false;
    const level = this.#levels[this.#indexOf(number)];
    return level?.number === number && sizeOf(level) >= maxQueueSize;
  }

  /**
   * @returns true if the request is behind all others. @param nowUs never earlier than that of a call before
   */
  add(request: R, nowUs: number): boolean {
    if (this.#places.has(request)) throw new TypeError('A request that waits already cannot wait once more.');
    const level = this.#levelFor(levelOf(this.#config, request.priority));
    this.#stand(request, level, nowUs, { order: this.#order++, isFront: false });
    return level === this.#levels.at(-1) && level.delayed.size === 0;
  }

  /** A request that was taken out by `remove` waits again, the first of its level. @param enqueuedUs since when it has waited in all */
  putBack(request: R, enqueuedUs: number): void {
    if (this.#places.has(request)) throw new TypeError('A request that waits already cannot wait once more.');
    const level = this.#levelFor(levelOf(this.#config, request.priority));
    this.#stand(request, level, enqueuedUs, { order: --this.#frontOrder, isFront: true });
  }

  /** Takes out a request that waits; null where it does not. */
  remove(request: R): Place<R> | null {
    const place = this.#places.get(request) ?? null;
    if (place === null) return null;
    this.#places.delete(request);
    this.#deadlines.remove(place);
    this.#arrivals.remove(place.arrival);
    place.chain.remove(place.link);
    if (sizeOf(place.level) === 0) this.#levels.splice(this.#indexOf(place.level.number), 1);
    return place;
  }

  /**
   * Applies the policies to the request that expires next, where it has: it is taken out, or moves to the end
   * of its level.
   * @returns what became of it; null: no request has expired
   */
  expireOne(nowUs: number): { place: Place<R>; isRejected: boolean } | null {
    const place = this.#deadlines.first;
    if (place === null || place.deadlineUs > nowUs) return null;
    const isRejected = place.level.policy.timeoutAction === 'REJECT';
    if (isRejected) this.remove(place.request);
    else {
      this.#deadlines.remove(place);
      place.chain.remove(place.link);
      place.chain = place.level.delayed;
      place.link = place.chain.push(place);
    }
    return { place, isRejected };
  }

  /** All that wait, in the order in which they may run. Nothing may come or leave meanwhile. */
  *[Symbol.iterator](): Generator<Place<R>> {
    for (const { fresh, delayed } of this.#levels) {
      for (let link = fresh.first; link !== null; link = link.next) yield link.item;
      for (let link = delayed.first; link !== null; link = link.next) yield link.item;
    }
  }

  #stand(
    request: R,
    level: Level<R>,
    enqueuedUs: number,
    { order, isFront }: { order: number; isFront: boolean },
  ): void {
    const place = {
      request,
      level,
      enqueuedUs,
      deadlineUs: deadlineOf(level.policy, request.timeoutUs, enqueuedUs),
      order,
      heapIndex: -1,
      chain: level.fresh,
    } as Place<R>;
    const link = level.fresh.insert(place, isFront ? level.fresh.first : null);
    const arrival = this.#arrivals.insert(place, isFront ? this.#firstAfter(enqueuedUs) : null);
    this.#places.set(request, Object.assign(place, { link, arrival }));
    if (place.deadlineUs < Number.POSITIVE_INFINITY) this.#deadlines.add(place);
  }

  /** Who of those that wait came first after this time; who is put back was near the front. */
  #firstAfter(enqueuedUs: number): Link<Place<R>> | null {
    let link = this.#arrivals.first;
    while (link !== null && link.item.enqueuedUs < enqueuedUs) link = link.next;
    return link;
  }

  #levelFor(number: number): Level<R> {
    const index = this.#indexOf(number);
    const known = this.#levels[index];
    if (known?.number === number) return known;
    const policy = policyOf(this.#config, number);
    const level: Level<R> = { number, policy, fresh: new Chain(), delayed: new Chain() };
    this.#levels.splice(index, 0, level);
    return level;
  }

  /** Where the level stands among those that exist, or would. */
  #indexOf(number: number): number {
    let from = 0;
    let to = this.#levels.length;
    while (from < to) {
      const middle = (from + to) >> 1;
      if (this.#levels[middle]!.number < number) from = middle + 1;
      else to = middle;
    }
    return from;
  }
}

function sizeOf({ fresh, delayed }: Level<unknown>): number {
  return fresh.size + delayed.size;
}
