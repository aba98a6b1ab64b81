import type { StateStats } from './kv-cache-stats.js';
import type { BlockCopies } from './memory-changes.js';
import type { PrefixNode } from './prefix-tree.js';
import { StateSlots } from './state-slots.js';
import { StateSnapshots } from './state-snapshots.js';

export interface StateOptions {
  /** Slots for the states of sequences that run. */
  numSlots: number;
  /** Slots for snapshots, numbered after those; 0: none is made. */
  numSnapshots: number;
  tokensPerBlock: number;
  /** Number of a prompt's tokens from one snapshot to the next, a multiple of tokensPerBlock. */
  interval: number;
  /** Called when a node of the tree has got a snapshot, or has lost it. */
  onSnapshot?: (node: PrefixNode) => void;
}

/** Where a sequence begins. */
export interface SequenceStart {
  width: number;
  promptLength: number;
  /** Whether it leaves what it computes for others. */
  isShared: boolean;
  /** The block after which it goes on, which has a snapshot; null: it begins with the first token. */
  from: PrefixNode | null;
  /** Tokens of the prompt up to there. */
  foundTokens: number;
  /** Tokens of the prompt whose blocks are cached, with states or without. */
  cachedTokens: number;
  /** See SharedPrefix.forksAt; 0: nowhere. */
  forksAt: number;
}

/** A snapshot that a step makes: of the states after `position` tokens. */
export interface SnapshotPlace {
  position: number;
  slot: number;
}

/** Tokens [start, end) of a sequence that a step computes. The last `drafts` tokens in front of `end` are a draft, which may begin before the step. */
export interface StepSpan {
  start: number;
  end: number;
  drafts: number;
}

/** What steps do with the states of sequences; the cache itself adds, keeps and releases them. */
export type StepStates = Pick<
  SequenceStates,
  'numSlots' | 'mostSnapshots' | 'slotOf' | 'pass' | 'takeSnapshots' | 'pendingSlots' | 'drainCopies'
>;

/** What is known of a request's sequences. */
interface Progress {
  promptLength: number;
  /** Tokens in front of the draft whose rows are logged, up to which the states are kept; -1: no rows are. */
  loggedFrom: number;
  /** End of the cached blocks that have no states; 0: there is none. */
  junction: number;
  /** End of the last full block before other prompts are likely to differ; 0: there is none. */
  fork: number;
  /** Snapshots that are made and not kept yet, ascending; null: the request leaves none. */
  pending: SnapshotPlace[] | null;
}

/**
 * The states of sequences, stored outside their blocks: slots of those that run, and snapshots that wait for
 * others. A snapshot is made by the step that passes its place, at full blocks alone:
 *
 *   prompt       |----|----|----|----|----|--       tokensPerBlock 4, interval 8
 *                          ^         ^    ^
 *                          interval  .    the last full block before the prompt's last token
 *                                    a junction: so far cached blocks had the same tokens, without states;
 *                                    or the last full block before the end of the last picture, for other questions on it
 *   generated    ----|----|----|-                   the last full block alone: its slot is written again and again; the prompt's end
 *                              ^                    counts as one, where a block ends there
 *   a draft      ----|----|- d d d|d                in a slot of its own, until it is known how much of the draft was right
 *                                 ^
 *
 * A junction is where prompts part that begin alike: the second of them makes the snapshot that all others begin with.
 */
export class SequenceStates {
  readonly #options: StateOptions;
  readonly #slots: StateSlots;
  readonly #snapshots: StateSnapshots;
  readonly #progress = new Map<bigint, Progress>();
  #hits = 0;
  #lost = 0;

  constructor(options: StateOptions) {
    this.#options = options;
    this.#slots = new StateSlots(options.numSlots);
    this.#snapshots = new StateSnapshots(options.numSlots, options.numSnapshots, options.onSnapshot);
  }

  get numSlots(): number {
    return this.#slots.numSlots;
  }

  get freeSlots(): number {
    return this.#slots.freeSlots;
  }

  /** Changes whenever a snapshot is kept or goes. */
  get version(): number {
    return this.#snapshots.version;
  }

  stats(): StateStats {
    const { numSlots: slots, numSnapshots: snapshots } = this.#options;
    return {
      slots,
      usedSlots: slots - this.freeSlots,
      snapshots,
      keptSnapshots: this.#snapshots.numKept,
      hits: this.#hits,
      lost: this.#lost,
    };
  }

  /** Most snapshots that a step of `tokens` tokens and `sequences` sequences makes. */
  mostSnapshots(tokens: number, sequences: number): number {
    return Math.min(
      this.#options.numSnapshots,
      Math.ceil(tokens / this.#options.tokensPerBlock) + 3 * sequences,
    );
  }

  /** Takes slots for a request's sequences, the first of which begins with the states of `from`. False: there are not as many. */
  add(
    requestId: bigint,
    { width, promptLength, isShared, from, foundTokens: found, cachedTokens, forksAt }: SequenceStart,
  ): boolean {
    if (!this.#slots.take(requestId, width)) return false;
    if (from !== null) {
      this.#snapshots.touch(from);
      this.#slots.copyFrom(from.state, requestId);
      this.#hits += 1;
    }
    if (cachedTokens > found) this.#lost += 1;
    this.#progress.set(requestId, {
      promptLength,
      loggedFrom: -1,
      junction: cachedTokens > found ? cachedTokens : 0,
      fork: this.#wholeBlocks(forksAt),
      pending: isShared && this.#options.numSnapshots > 0 ? [] : null,
    });
    return true;
  }

  /** Slot for the states of one of the request's sequences. */
  slotOf(requestId: bigint, index = 0): number {
    return this.#slots.slotOf(requestId, index);
  }

  fork(requestId: bigint, parents: readonly number[]): void {
    this.#slots.fork(requestId, parents);
  }

  release(requestId: bigint): void {
    this.#slots.release(requestId);
    for (const { slot } of this.#progress.get(requestId)?.pending ?? []) this.#snapshots.free(slot);
    this.#progress.delete(requestId);
  }

  /**
   * Notes a step of the request. Returns how many rows of its former draft the executor replays in front of the step's: those that
   * the step begins after. Only a request of one sequence has drafts.
   *
   *   tokens     g7 | d8 d9 d10 d11     the states are kept up to here, and four rows are logged
   *   next step  g7   d8 d9 | g10       d8 and d9 were right: 2
   */
  pass(requestId: bigint, { start, end, drafts }: StepSpan): number {
    const progress = this.#progress.get(requestId);
    if (progress === undefined) return 0;
    const { loggedFrom } = progress;
    progress.loggedFrom = drafts === 0 ? -1 : end - drafts;
    return loggedFrom < 0 ? 0 : start - loggedFrom;
  }

  /** Takes slots for the snapshots that a step of the request's first sequence makes. */
  takeSnapshots(requestId: bigint, { start, end, drafts }: StepSpan): SnapshotPlace[] {
    const progress = this.#progress.get(requestId);
    if (progress === undefined || progress.pending === null) return [];
    const { tokensPerBlock: size } = this.#options;
    // A step that is computed again makes its snapshots again.
    while (progress.pending.length > 0 && progress.pending.at(-1)!.position > start)
      this.#snapshots.free(progress.pending.pop()!.slot);
    const places: SnapshotPlace[] = [];
    for (let position = (Math.floor(start / size) + 1) * size; position <= end; position += size) {
      if (!this.#isWanted(position, progress)) continue;
      const slot = this.#slotFor(position, progress, end - drafts);
      if (slot < 0) continue;
      progress.pending.push({ position, slot });
      places.push({ position, slot });
    }
    return places;
  }

  /** Only the first `length` tokens of the sequence were right: its snapshots of later ones are given back. */
  settle(requestId: bigint, length: number): void {
    const progress = this.#progress.get(requestId);
    if (progress === undefined || progress.pending === null) return;
    const newest = progress.pending.findLast(({ position }) => position <= length);
    const isKept = (place: SnapshotPlace) =>
      place === newest || (place.position <= length && place.position < progress.promptLength);
    for (const place of progress.pending) if (!isKept(place)) this.#snapshots.free(place.slot);
    progress.pending = progress.pending.filter(isKept);
  }

  /** Slots of the request's snapshots that are not kept yet. */
  pendingSlots(requestId: bigint): Int32Array {
    return Int32Array.from(this.#progress.get(requestId)?.pending ?? [], ({ slot }) => slot);
  }

  /** Keeps the snapshots of the request's first tokens, whose blocks the nodes are, from the first one on. */
  keep(requestId: bigint, nodes: readonly PrefixNode[]): void {
    const progress = this.#progress.get(requestId);
    if (progress === undefined || progress.pending === null) return;
    const { tokensPerBlock: size } = this.#options;
    progress.pending = progress.pending.filter(({ position, slot }) => {
      const node = nodes[position / size - 1];
      if (node === undefined) return true;
      this.#snapshots.keep(node, slot);
      return false;
    });
  }

  /** Gives a node that has none a snapshot that was made elsewhere: `write` writes it into the slot, and says whether it is kept. */
  adopt(node: PrefixNode, write: (slot: number) => boolean): void {
    if (node.state >= 0) return;
    const slot = this.#snapshots.reserve();
    if (slot < 0) return;
    if (write(slot)) this.#snapshots.keep(node, slot);
    else this.#snapshots.free(slot);
  }

  /** From now on requests leave nothing for others. */
  stopSharing(): void {
    for (const progress of this.#progress.values()) {
      for (const { slot } of progress.pending ?? []) this.#snapshots.free(slot);
      progress.pending = null;
    }
  }

  /** A node leaves the tree. */
  removeNode(node: PrefixNode): void {
    this.#snapshots.remove(node);
  }

  /** The copies of states since the last call, or null. The executor makes them in this order before its next step. */
  drainCopies(): BlockCopies | null {
    return this.#slots.drainCopies();
  }

  findInconsistency(holders: Iterable<bigint>): string | null {
    const reserved = [...this.#progress.values()].flatMap(({ pending }) =>
      (pending ?? []).map(({ slot }) => slot),
    );
    return this.#slots.findInconsistency(holders) ?? this.#snapshots.findInconsistency(reserved);
  }

  #isWanted(position: number, { promptLength, junction, fork }: Progress): boolean {
    // A prompt that ends with a full block: a longer one can continue after it, the same one only a block
    // earlier.
    if (position >= promptLength) return true;
    const isLast = position === this.#wholeBlocks(promptLength - 1);
    const isParting = position === junction || position === fork;
    return isLast || isParting || position % this.#options.interval === 0;
  }

  /** As many of the tokens as fill blocks. */
  #wholeBlocks(tokens: number): number {
    return tokens - (tokens % this.#options.tokensPerBlock);
  }

  /** A slot for a snapshot at this position: among generated tokens that are certain the newest one alone is kept. */
  #slotFor(position: number, { promptLength, pending }: Progress, certain: number): number {
    const newest = pending!.at(-1);
    const isFirst = position < promptLength || newest === undefined || newest.position < promptLength;
    if (isFirst || position > certain) return this.#snapshots.reserve();
    pending!.pop();
    return newest.slot;
  }
}
