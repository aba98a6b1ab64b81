import type { KvCacheManager, SharedPrefix } from '../../kvcache/kv-cache-manager.js';
import { type DiskKey, stateKey } from '../disk-cache/block-file.js';
import type { DiskAnswer, DiskStore, ReadBlock } from '../disk-cache/disk-messages.js';
import type { LlmRequest } from '../request/llm-request.js';
import type { BlockTransfer } from './block-transfer.js';

/** Bytes that are asked for at once, and that are written to the pool in one iteration. */
const PART_BYTES = 8 * 2 ** 20;
/** Parts that are on their way: the disk reads one while the loop writes another. */
const MAX_PARTS = 2;

type ReadReply = Extract<DiskAnswer, { type: 'read' }>;

/** A prompt whose blocks are being read. */
interface Load {
  request: LlmRequest;
  prompt: SharedPrefix;
  promptLength: number;
  /** Hashes of its blocks from number 0 on, as far as they are to be cached. */
  hashes: number[];
  /** Hashes of blocks after these, which are there without states. */
  behind: number[];
  /** Number of the next block to ask for; -1: nothing has been asked for. */
  next: number;
  /** Whether the states after the last block have still to be asked for. */
  needsState: boolean;
  /** Parts that have been asked for, oldest first. */
  parts: { readId: number; first: number; count: number; hasState: boolean }[];
}

export interface LoadsOptions {
  store: DiskStore;
  kvCache: KvCacheManager;
  transfer: BlockTransfer;
  /** Whether a block, or states, are on the disk. */
  has(key: DiskKey): boolean;
  /** Removes what will be written once more. */
  drop(keys: DiskKey[]): void;
}

/**
 * Requests that wait until the beginning of their prompt has been read from the disk, in their order; all others go on. A request waits
 * for each of its runs once at most: what has not come then is computed.
 *
 *   prompt     | 0 | 1 | 2 | 3 | 4 | 5 | 6 | ..          in the cache 0 and 1, on the disk 2 to 5
 *   asked for          |--part-|--part-|                  2 and 3, then 4 and 5 while those are written to the pool
 *
 * Where the model has states, a prompt can begin only after blocks whose states are there: it is read up to
 * the last of these.
 */
export class DiskLoads {
  readonly #options: LoadsOptions;
  readonly #waiting = new Map<LlmRequest, Load>();
  /** The number of pauses that a request had when its blocks were looked for. */
  readonly #lookedFor = new WeakMap<LlmRequest, number>();
  #numReads = 0;
  #hits = 0;
  #misses = 0;
  #readBytes = 0;

  constructor(options: LoadsOptions) {
    this.#options = options;
  }

  get stats(): { hits: number; misses: number; readBytes: number } {
    return { hits: this.#hits, misses: this.#misses, readBytes: this.#readBytes };
  }

  /** Number of requests that wait. */
  get numWaiting(): number {
    return this.#waiting.size;
  }

  isWaiting(request: LlmRequest): boolean {
    return this.#waiting.has(request);
  }

  /** True until the request, which has not begun to run, has been looked for. */
  isNew(request: LlmRequest): boolean {
    if (request.phase !== 'context' || request.contextPosition > 0 || request.blocksHeld > 0) return false;
    return this.#lookedFor.get(request) !== request.numPauses;
  }

  /** Looks for the request's prompt on the disk. @param prompt by which it shares blocks; null: it does not */
  consider(request: LlmRequest, prompt: SharedPrefix | null): void {
    this.#lookedFor.set(request, request.numPauses);
    if (prompt === null) return;
    const { kvCache, store, has } = this.#options;
    const { promptLength } = request;
    const { hashes, cached, usable } = kvCache.chainBeyond(prompt, promptLength, has);
    this.#misses += Math.floor((promptLength - 1) / kvCache.tokensPerBlock) - hashes.length;
    const hasStates = store.format.bytesPerState > 0;
    const end = hasStates ? hashes.findLastIndex((hash) => has(stateKey(hash))) + 1 : hashes.length;
    const used = hashes.slice(0, Math.max(cached, end)).filter(has);
    if (used.length > 0) {
      store.post({ type: 'used', keys: hasStates ? [...used, stateKey(used.at(-1)!)] : used });
    }
    if (end <= usable) return;
    const load = { request, prompt, promptLength, hashes: hashes.slice(0, end), behind: hashes.slice(end) };
    this.#waiting.set(request, { ...load, next: -1, needsState: hasStates, parts: [] });
  }

  /** Asks for what the first of the waiting requests still needs. */
  advance(): void {
    for (const load of this.#waiting.values()) {
      if (load.request.isComplete) this.#waiting.delete(load.request);
      else if (this.#ask(load)) return;
      else this.#waiting.delete(load.request);
    }
  }

  /** Puts what was read into the pool. */
  take({ readId, bytes, isDamaged }: Pick<ReadReply, 'readId' | 'bytes' | 'isDamaged'>): void {
    const load = this.#waiting.values().next().value;
    const part = load?.parts[0];
    // Of a request that has ended meanwhile, or waits no longer.
    if (load === undefined || part?.readId !== readId) return;
    load.parts.shift();
    const { format } = this.#options.store;
    const blockBytes = Math.min(bytes.length, part.count * format.bytesPerBlock);
    const numRead = Math.floor(blockBytes / format.bytesPerBlock);
    const state = part.hasState && bytes.length > blockBytes ? bytes.subarray(blockBytes) : null;
    const blocks = bytes.subarray(0, numRead * format.bytesPerBlock);
    const { first } = part;
    const has = this.#options.transfer.write(load.prompt, {
      first,
      numBlocks: numRead,
      bytes: blocks,
      state,
    });
    this.#hits += has;
    this.#readBytes += bytes.length;
    if (isDamaged) this.#dropFrom(load, part.first + numRead);
    if (numRead === part.count && has === numRead) return;
    this.#misses += part.count - has;
    this.#waiting.delete(load.request);
  }

  /**
   * Where one block is damaged, others of its prompt may be too. All from there on are computed now and
   * written once more, and the next prompt need not find the next damaged one.
   */
  #dropFrom({ hashes, behind }: Load, first: number): void {
    const keys = [...hashes, ...behind].slice(first).flatMap((hash) => [hash, stateKey(hash)]);
    this.#options.drop(keys.filter(this.#options.has));
  }

  /** Requests wait no longer. */
  stop(): void {
    this.#waiting.clear();
  }

  /** False: it needs nothing more. */
  #ask(load: Load): boolean {
    const { kvCache, store } = this.#options;
    if (load.next < 0) {
      // Others may have brought some of them while it waited for its turn.
      const { cached, usable } = kvCache.chainBeyond(load.prompt, load.promptLength, () => false);
      load.next = Math.min(cached, load.hashes.length);
      load.needsState &&= usable < load.hashes.length;
    }
    const most = Math.max(1, Math.floor(PART_BYTES / store.format.bytesPerBlock));
    while (load.parts.length < MAX_PARTS && (load.next < load.hashes.length || load.needsState)) {
      const first = load.next;
      const hashes = load.hashes.slice(first, first + most);
      load.next += hashes.length;
      const hasState = load.needsState && load.next === load.hashes.length;
      if (hasState) load.needsState = false;
      this.#read(load, { first, hashes, hasState });
    }
    return load.parts.length > 0;
  }

  #read(
    { prompt, next, parts, ...load }: Load,
    { first, hashes, hasState }: { first: number; hashes: readonly number[]; hasState: boolean },
  ): void {
    const { kvCache, store } = this.#options;
    const length = next * kvCache.tokensPerBlock;
    const blocks: ReadBlock[] = hashes.map((key, i) => ({
      key,
      length: (first + i + 1) * kvCache.tokensPerBlock,
    }));
    if (hasState) blocks.push({ key: stateKey(load.hashes.at(-1)!), length });
    this.#numReads += 1;
    parts.push({ readId: this.#numReads, first, count: hashes.length, hasState });
    const { salt, loraId = null, tokens } = prompt;
    const asked = { salt, loraId, tokens: tokens.slice(0, length) };
    store.post({ type: 'read', readId: this.#numReads, prompt: asked, blocks });
  }
}
