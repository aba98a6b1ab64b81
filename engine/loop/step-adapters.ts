import { messageOf } from '../../base/error-text.js';
import { type Executor, ExecutorLostError } from '../executors/executor.js';
import type { PeftCacheManager } from '../peft/peft-cache-manager.js';
import type { LlmRequest } from '../request/llm-request.js';
import type { Chunks } from './iteration.js';

/** Adapters of one call of the executor: it holds their slots from packing to its end. */
export class StepAdapters {
  readonly #cache: PeftCacheManager | null;
  readonly #held = new Set<bigint>();

  /** @param cache null: requests have no adapters */
  constructor(cache: PeftCacheManager | null) {
    this.#cache = cache;
  }

  /** Finds slots for the adapters of these requests; see `slotOf`. */
  begin(chunks: Chunks): void {
    this.end();
    if (this.#cache === null) return;
    for (const { request } of chunks) if (request.adapter !== null) this.#held.add(request.adapter.taskId);
    if (this.#held.size === 0) return;
    for (const taskId of this.#cache.ensure([...this.#held])) this.#held.delete(taskId);
  }

  /** Slot of the request's adapter; -1: it has none; null: there was no room for it. */
  slotOf({ adapter }: LlmRequest): number | null {
    if (adapter === null || this.#cache === null) return -1;
    return this.#held.has(adapter.taskId) ? this.#cache.slotOf(adapter.taskId) : null;
  }

  /** Gives the slots back, once; to be called before the call's requests leave. */
  end(): void {
    if (this.#held.size === 0) return;
    this.#cache!.endStep([...this.#held]);
    this.#held.clear();
  }
}

/**
 * Makes the changes in the executor's slots that the next step needs; called while no step runs. `fail` is called for a slot that
 * could not be changed.
 */
export function changeSlots(
  { adapters: slots }: Executor,
  cache: PeftCacheManager | null,
  fail: (slot: number, reason: string) => void,
): void {
  if (cache === null || slots === undefined) return;
  for (const { slot, weights } of cache.drainChanges()) {
    try {
      if (weights === null) slots.clear(slot);
      else slots.put(slot, weights);
    } catch (error) {
      if (error instanceof ExecutorLostError) throw error;
      cache.noteFailed(slot);
      fail(slot, messageOf(error));
    }
  }
}
