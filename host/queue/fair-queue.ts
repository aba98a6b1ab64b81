import { insertByPriority, type Waiting, type WaitingQueue } from './waiting-queue.js';

/** Number of tokens that a key of weight 1 gets in a round. */
const DEFAULT_QUANTUM = 512;

/** The requests of one key, and its credit. */
interface Flow<T> {
  key: string;
  weight: number;
  /** Tokens that the key was given and has not used. */
  deficit: number;
  items: T[];
}

/**
 * Deficit round robin over keys, in tokens. The keys with requests stand in a ring. In its turn a key takes requests,
 * each for its cost, as long as its credit suffices; when no key can take any more, a round begins, which gives each
 * key `quantum` x its weight tokens:
 *
 *   quantum 100      A: 40 each             B: 90 each            C: one of 250
 *   given 100        40 40, keeps 20        90, keeps 10          keeps 100
 *   given 100        40 40 40, keeps 0      90, keeps 20          keeps 200
 *   given 100        40 40, keeps 20        90, keeps 30          250, and leaves the ring
 *
 * A key that enters the ring gets that many tokens at once, but only once a round, and has its turn after all
 * others: one request behind the floods of other keys waits for one turn of each, and keys that come and go
 * starve no other key. A request is always handed out: rounds that would only add credit are skipped.
 *
 * Tokens that a request was charged for and did not use (`settle`) return to its key while the key has
 * requests in the ring, and are spent before the next round: so the tokens really computed are what is
 * shared. A turn ends after one round's tokens, or one request, so that others have theirs meanwhile. A key
 * that has the ring for itself is charged nothing and gets nothing back, since no other key wanted those
 * tokens.
 */
export class FairQueue<T extends Waiting> implements WaitingQueue<T> {
  readonly #quantum: number;
  readonly #flows = new Map<string, Flow<T>>();
  /** Keys with requests; the first one has its turn. */
  readonly #ring: Flow<T>[] = [];
  /** Tokens taken in the present turn. */
  #turn = 0;
  /** Credit left to the keys that left the ring in this round. */
  readonly #left = new Map<string, number>();
  /** Tokens charged for each request that was taken and has not ended. */
  readonly #charges = new Map<T, number>();
  #size = 0;

  constructor(quantum = DEFAULT_QUANTUM) {
    this.#quantum = quantum;
  }

  get size(): number {
    return this.#size;
  }

  sizeOf(key: string): number {
    return this.#flows.get(key)?.items.length ?? 0;
  }

  push(item: T): void {
    this.#size++;
    const known = this.#flows.get(item.key);
    if (known) {
      insertByPriority(known.items, item);
      return;
    }
    const flow: Flow<T> = { key: item.key, weight: item.weight, deficit: 0, items: [item] };
    flow.deficit = this.#left.get(item.key) ?? this.#share(flow);
    this.#flows.set(item.key, flow);
    this.#ring.push(flow);
  }

  take(max: number): T[] {
    const count = max < 0 ? this.#size : Math.min(max, this.#size);
    return Array.from({ length: count }, () => this.#takeOne());
  }

  list(max: number): T[] {
    return this.#ring.flatMap(({ items }) => items.slice(0, max)).slice(0, max);
  }

  remove(item: T): boolean {
    const flow = this.#flows.get(item.key);
    const place = flow?.items.indexOf(item) ?? -1;
    if (!flow || place < 0) return false;
    flow.items.splice(place, 1);
    this.#size--;
    if (flow.items.length === 0) this.#drop(flow);
    return true;
  }

  settle(item: T, usedTokens: number): void {
    const charged = this.#charges.get(item);
    if (charged === undefined) return;
    this.#charges.delete(item);
    const flow = this.#flows.get(item.key);
    if (flow) flow.deficit += Math.max(0, charged - usedTokens);
  }

  #takeOne(): T {
    let passed = 0;
    let hadTurn: Flow<T> | null = null;
    for (;;) {
      const flow = this.#ring[0]!;
      const item = this.#next(flow);
      if (item !== null) return item;
      if (this.#turn > 0) hadTurn = flow;
      this.#pass();
      passed++;
      if (passed === this.#ring.length) {
        this.#beginRounds();
        // Otherwise this key would have two turns in a row, where the others had no credit for theirs.
        if (hadTurn === this.#ring[0]) this.#pass();
        passed = 0;
      }
    }
  }

  /** Ends the turn of the first key. */
  #pass(): void {
    this.#ring.push(this.#ring.shift()!);
    this.#turn = 0;
  }

  /** Next request of the key in its turn, charged for; null where its turn is over. */
  #next(flow: Flow<T>): T | null {
    const item = flow.items[0]!;
    const isAlone = this.#ring.length === 1;
    const exceedsTurn = this.#turn > 0 && this.#turn + item.cost > this.#share(flow);
    if (!isAlone && (item.cost > flow.deficit || exceedsTurn)) return null;
    flow.items.shift();
    this.#size--;
    if (isAlone) flow.deficit = 0;
    else {
      flow.deficit -= item.cost;
      this.#charges.set(item, item.cost);
      this.#turn += item.cost;
    }
    if (flow.items.length === 0) this.#drop(flow);
    return item;
  }

  /** Begins as many rounds as it takes for some key to take a request; none where only a turn has ended. */
  #beginRounds(): void {
    const roundsOf = (flow: Flow<T>) =>
      Math.max(0, Math.ceil((flow.items[0]!.cost - flow.deficit) / this.#share(flow)));
    const rounds = Math.min(...this.#ring.map(roundsOf));
    for (const flow of this.#ring) flow.deficit += rounds * this.#share(flow);
    if (rounds > 0) this.#left.clear();
  }

  #share({ weight }: Flow<T>): number {
    return this.#quantum * weight;
  }

  /** Takes a key without requests out of the ring; its credit lasts until the round ends. */
  #drop(flow: Flow<T>): void {
    this.#left.set(flow.key, flow.deficit);
    const place = this.#ring.indexOf(flow);
    this.#ring.splice(place, 1);
    this.#flows.delete(flow.key);
    if (place === 0) this.#turn = 0;
  }
}
