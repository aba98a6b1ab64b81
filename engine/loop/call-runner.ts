import type { KvCacheManager } from '../../kvcache/kv-cache-manager.js';
import type { Executor } from '../executor.js';
import { messageOf } from './error-text.js';
import type { Chunks, EndedCall, Iteration } from './iteration.js';
import type { PackedCall } from './packed-call.js';

/** Runs calls of the executor, one at a time. A call that throws fails its own requests and nothing else. */
export class CallRunner {
  readonly #executor: Executor;
  readonly #kvCache: KvCacheManager;
  readonly #clock: () => number;
  readonly #call: PackedCall;

  constructor(
    { executor, kvCache, clock }: { executor: Executor; kvCache: KvCacheManager; clock: () => number },
    call: PackedCall,
  ) {
    this.#executor = executor;
    this.#kvCache = kvCache;
    this.#clock = clock;
    this.#call = call;
  }

  run(chunks: Chunks, iteration: Iteration): EndedCall {
    const call = this.#call;
    call.pack(chunks, iteration);
    return call.end(!call.isEmpty && this.#step(call));
  }

  /** Copies of blocks come before the step that zeroes and writes what was handed out with them. */
  #step(call: PackedCall): boolean {
    const startMs = this.#clock();
    try {
      const copies = this.#kvCache.drainCopies();
      if (copies) this.#executor.copyBlocks(copies.source, copies.target);
      this.#executor.step(call.batch, call.batch.sampling, call.output);
      return true;
    } catch (error) {
      call.fail(messageOf(error));
      return false;
    } finally {
      call.iteration.counts.executorMs += this.#clock() - startMs;
    }
  }
}
