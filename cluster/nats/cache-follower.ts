import {
  type CacheAsk,
  type CacheChange,
  type CachePart,
  MAX_CACHE_BLOCKS,
  MAX_MESSAGE_BLOCKS,
} from './cache-messages.js';

/** Where a follower notes what it knows. */
export interface FollowedBlocks {
  /** Nothing of what was noted is true any more. */
  clear(): void;
  /** hasState: whether the states after the block are kept; called again when that changes. null: the model is not known to have any. */
  add(hash: number, hasState: boolean | null): void;
  remove(hash: number): void;
}

/** Blocks of changes that are kept until what comes before them is there. */
const MAX_LATER_BLOCKS = 4 * MAX_MESSAGE_BLOCKS;
const MAX_LATER = 256;
/** A beat may be older than a change that has come before it; this many low beats in a row are not. */
const MAX_LOW_BEATS = 3;
/** Parts of a whole: a worker whose parts are smaller has a NATS server for tiny messages. */
const MAX_PARTS = 1_024;

/**
 * Follows one worker's cache by the changes that its CacheTeller publishes. What is noted is always a cache
 * that the worker had, all of it, a moment ago: never one of which something is missing, and never one of an
 * engine that is gone.
 *
 *   nothing --whole, or a change that starts over--> cache n --change n to m--> cache m ...
 *      ^                                                |
 *      '--------- no answer ---------- behind: changes were lost; it asks for them
 *
 * A state machine without clock or I/O.
 */
export class CacheFollower {
  readonly #blocks: FollowedBlocks;
  /** Number of the cache that is noted; null: none is. */
  #number: number | null = null;
  /** The highest number that was reported to it. */
  #told = 0;
  /** Beats in a row whose number is lower. */
  #lowBeats = 0;
  #later: CacheChange[] = [];
  #laterBlocks = 0;
  #whole: { next: number; parts: CachePart[]; filled: number } | null = null;
  /** An ask is under way; changes that arrive meanwhile may be needed after the answer. */
  #isAsking = false;

  constructor(blocks: FollowedBlocks) {
    this.#blocks = blocks;
  }

  /** Number of the cache that is noted; null: none is, since it is not known. */
  get number(): number | null {
    return this.#number;
  }

  /** There is something to ask for. */
  get isBehind(): boolean {
    return this.#number === null || this.#number < this.#told;
  }

  /**
   * The worker says in a beat that its cache has this number. Where it stays lower than the number reported
   * before, that report came from another process, or the worker counts from the start again: then nothing is
   * known.
   */
  onBeat(number: number): void {
    this.#onNumber(number);
    this.#lowBeats = number < this.#told ? this.#lowBeats + 1 : 0;
    if (this.#lowBeats < MAX_LOW_BEATS) return;
    this.#lowBeats = 0;
    this.#told = number;
    this.forget();
  }

  #onNumber(number: number): void {
    if (number > this.#told) this.#told = number;
  }

  onChange(change: CacheChange): void {
    this.#onNumber(change.next);
    if (this.#apply(change)) this.#applyLater();
    else if (this.#isAsking && this.#number !== null ? change.next > this.#number : this.#isAsking) {
      this.#keep(change);
    }
  }

  /** What is to be asked now. Every ask is to be followed by onAnswer or by onUnanswered. */
  ask(): CacheAsk {
    this.#isAsking = true;
    const whole = this.#whole === null ? null : { next: this.#whole.next, offset: this.#whole.filled };
    return { kind: 'cacheAsk', from: this.#number ?? 0, whole };
  }

  /** False: the answer brings it no further. */
  onAnswer(answer: CacheChange | CachePart): boolean {
    const before = this.#number;
    const filled = this.#whole?.filled;
    if (answer.kind === 'cachePart') this.#onPart(answer);
    else this.#onReply(answer);
    this.#endAsk();
    return this.#number !== before || this.#whole?.filled !== filled;
  }

  /** No answer came: what is noted may be long outdated. */
  onUnanswered(): void {
    this.#isAsking = false;
    this.forget();
  }

  /** Believes nothing any more. */
  forget(): void {
    if (this.#number !== null) this.#blocks.clear();
    this.#number = null;
    this.#whole = null;
    this.#dropLater();
  }

  #onReply(change: CacheChange): void {
    this.#onNumber(change.next);
    // Number 0 is an empty cache: who has nothing has that.
    if (this.#number === null && change.from === 0) this.#number = 0;
    if (this.#apply(change)) this.#applyLater();
  }

  #onPart(part: CachePart): void {
    const { next, offset, total, blocks } = part;
    this.#onNumber(next);
    if (offset === 0) this.#whole = { next, parts: [], filled: 0 };
    const whole = this.#whole;
    const isNext = whole !== null && whole.next === next && whole.filled === offset;
    const isLast = offset + blocks.length === total;
    const isBroken = total > MAX_CACHE_BLOCKS || (blocks.length === 0 && !isLast);
    if (!isNext || isBroken || whole.parts.length >= MAX_PARTS || next < (this.#number ?? 0)) {
      this.#whole = null;
      return;
    }
    whole.parts.push(part);
    whole.filled += blocks.length;
    if (!isLast) return;
    this.#whole = null;
    this.#begin(next, whole.parts);
  }

  #begin(number: number, parts: readonly CachePart[]): void {
    this.#blocks.clear();
    for (const { blocks, withState } of parts) this.#add(blocks, withState);
    this.#number = number;
    this.#applyLater();
  }

  /** False: it does not fit to what is noted. */
  #apply({ from, next, isAnew, stored, removed, withState }: CacheChange): boolean {
    const number = this.#number;
    if (number !== null && next <= number) return false;
    if (isAnew) {
      this.#whole = null;
      this.#blocks.clear();
    } else if (number === null || from > number) return false;
    for (const hash of removed) this.#blocks.remove(hash);
    this.#add(stored, withState);
    this.#number = next;
    return true;
  }

  #add(hashes: Float64Array, withState: Float64Array | undefined): void {
    const states = withState === undefined ? null : new Set(withState);
    for (const hash of hashes) this.#blocks.add(hash, states?.has(hash) ?? null);
  }

  #applyLater(): void {
    while (this.#later.some((change) => this.#apply(change)));
    if (this.#later.length === 0) return;
    const later = this.#later.filter(({ next }) => next > this.#number!);
    this.#dropLater();
    for (const change of later) this.#keep(change);
  }

  #keep(change: CacheChange): void {
    const size = change.stored.length + change.removed.length + (change.withState?.length ?? 0);
    // The worker is asked for what has no room here.
    if (this.#later.length >= MAX_LATER || this.#laterBlocks + size > MAX_LATER_BLOCKS) this.#dropLater();
    this.#later.push(change);
    this.#laterBlocks += size;
  }

  #dropLater(): void {
    this.#later = [];
    this.#laterBlocks = 0;
  }

  /** Between two parts of a whole it keeps asking. */
  #endAsk(): void {
    if (this.#whole !== null) return;
    this.#isAsking = false;
    this.#dropLater();
  }
}
