import type { KvCacheManager, SharedPrefix } from '../../kvcache/kv-cache-manager.js';
import type { DiskStats } from '../../kvcache/kv-cache-stats.js';
import type { DiskKey } from '../disk-cache/block-file.js';
import type { DiskReply, DiskStore, DiskUsage } from '../disk-cache/disk-messages.js';
import type { LlmRequest } from '../request/llm-request.js';
import type { BlockTransfer } from './block-transfer.js';
import { DiskLoads } from './disk-loads.js';
import { DiskWrites } from './disk-writes.js';

/** A disk that says nothing for so long, though it was asked, is not waited for any more. */
const SILENCE_MS = 20_000;
/** Milliseconds of a sleep in which all requests wait for the disk. */
const WAIT_MS = 20;

export interface DiskCacheParts {
  store: DiskStore;
  kvCache: KvCacheManager;
  transfer: BlockTransfer;
  /** Lowest retention priority of blocks that are written. */
  minPriority: number;
  /** Data by which a request shares blocks with others; null: it does not. */
  sharedOf(request: LlmRequest): SharedPrefix | null;
  clock(): number;
  reportError(error: Error): void;
}

/**
 * Keeps cached blocks on a disk too, for later prompts and later processes. A thread reads and writes; the loop asks it, and looks for
 * its replies between two iterations:
 *
 *   blocks become cached   -->  copied out of the pool, a few MiB in an iteration  -->  thread: file
 *   a prompt is looked for -->  it waits, others go on    -->  thread: reads  -->  adopted as blocks of other engines are
 */
export class DiskCache {
  readonly #parts: DiskCacheParts;
  readonly #writes: DiskWrites;
  readonly #loads: DiskLoads;
  #usage: DiskUsage = { files: 0, bytes: 0, damaged: 0, errors: 0 };
  /** Resets that the thread has not answered. Replies to what was asked before them are of no use. */
  #numErasing = 0;
  /** When the thread last replied, or had nothing to do. */
  #heardMs = 0;
  #isSilent = false;

  constructor(parts: DiskCacheParts) {
    this.#parts = parts;
    this.#writes = new DiskWrites(parts);
    this.#loads = new DiskLoads({
      ...parts,
      has: (key) => this.#writes.has(key),
      drop: (keys) => this.#drop(keys),
    });
    this.#heardMs = parts.clock();
  }

  stats(): DiskStats {
    const { files, bytes, damaged, errors } = this.#usage;
    const { maxBytes } = this.#parts.store;
    const { writtenBlocks } = this.#writes;
    return { files, bytes, maxBytes, ...this.#loads.stats, writtenBlocks, damaged, errors };
  }

  /** True until all that was on the disk when the cache was last reset is gone. */
  get isErasing(): boolean {
    return this.#numErasing > 0 && !this.#isSilent;
  }

  /** True while blocks wait to be written that could be. */
  get isBehind(): boolean {
    return !this.#isSilent && (this.#writes.isWriting || this.#parts.kvCache.numUnwritten > 0);
  }

  /** The requests that need not wait for blocks on the disk. */
  ready(requests: readonly LlmRequest[]): readonly LlmRequest[] {
    if (this.#isSilent) return requests;
    for (const request of requests) {
      if (!this.#loads.isNew(request)) continue;
      this.#loads.consider(request, this.#parts.sharedOf(request));
    }
    this.#loads.advance();
    if (this.#loads.numWaiting === 0) return requests;
    return requests.filter((request) => !this.#loads.isWaiting(request));
  }

  /** Called between two iterations: takes replies and hands over blocks. False: there is nothing to do until the thread replies. */
  advance(isBusy: boolean): boolean {
    if (this.#isSilent) return false;
    const { store, clock } = this.#parts;
    const isOwed = this.#loads.numWaiting > 0 || this.#writes.isWriting || this.#numErasing > 0;
    if (!isOwed) this.#heardMs = clock();
    for (let reply = store.receive(); reply !== null; reply = store.receive()) {
      this.#heardMs = clock();
      this.#take(reply);
    }
    if (clock() - this.#heardMs > SILENCE_MS) this.#giveUp();
    return !this.#isSilent && this.#writes.advance(isBusy);
  }

  /** Sleeps until the thread replies, for a short while at most. */
  waitAWhile(): void {
    if (this.#loads.numWaiting > 0 && !this.#isSilent) this.#parts.store.wait(WAIT_MS);
  }

  /** Erases what lies on the disk; nothing of it is found any more. */
  reset(): void {
    if (this.#isSilent) return;
    this.#writes.reset();
    this.#loads.stop();
    this.#numErasing += 1;
    this.#parts.store.post({ type: 'erase' });
  }

  #take(reply: DiskReply): void {
    if (reply.type === 'problem') {
      this.#parts.reportError(new Error(reply.message));
      return;
    }
    this.#usage = reply.usage;
    const isOld = this.#numErasing > 0;
    if (reply.type === 'listed' && !isOld) this.#writes.setKnown(reply.keys);
    else if (reply.type === 'erased') this.#numErasing -= 1;
    else if (reply.type === 'written') {
      this.#writes.noteWritten(reply.numBytes, isOld ? [] : reply.keys, reply.removed);
    } else if (reply.type === 'read') {
      this.#writes.forget(reply.removed);
      this.#loads.take(reply);
    }
  }

  #drop(keys: DiskKey[]): void {
    this.#writes.forget(keys);
    this.#parts.store.post({ type: 'drop', keys });
  }

  #giveUp(): void {
    this.#isSilent = true;
    this.#loads.stop();
    this.#parts.reportError(
      new Error(
        `The KV cache's folder has not answered for ${SILENCE_MS / 1000} seconds; the engine goes on without it.`,
      ),
    );
  }
}
