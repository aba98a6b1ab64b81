import type { AvailableMemory } from '../../kvcache/available-memory.js';
import { addMemory, type FixedMemory } from '../executors/memory-budget.js';

/** Memory that an engine needs of the memory shared with others. */
export interface MemoryNeeds {
  /** Memory that it takes in any case. */
  fixed: FixedMemory;
  /** Most memory, in bytes, that must be available for its KV cache to use its own limits fully. */
  mostBytes: number;
}

/**
 * Splits the available memory among the KV caches of several engines in one process. The memory that the engines take in any
 * case is subtracted first; the rest is shared equally, and what one cannot use is shared by the others:
 *
 *   available 20 GiB   - fixed 2 + 1 + 1                                  = 16 to share
 *   engines can use    2 (maxTokens), 40, 40   -> equal shares of 5.33    -> 2, 7, 7
 *
 * The same engines in the same order get the same shares of the same memory. Each takes its own freeGpuMemoryFraction of its
 * share.
 */
export function splitMemory(available: AvailableMemory, needs: readonly MemoryNeeds[]): AvailableMemory[] {
  const fixed = needs.map((one) => one.fixed).reduce(addMemory);
  const taken = fixed.packedWeights + fixed.storedWeights + fixed.workspace;
  const toShare = Math.max(0, available.bytes - taken);
  const shares = new Array<number>(needs.length).fill(0);
  let rest = toShare;
  let open = needs.map((_, index) => index);
  for (;;) {
    const equal = Math.floor(rest / Math.max(1, open.length));
    const modest = open.filter((index) => needs[index]!.mostBytes <= equal);
    if (modest.length === 0) {
      for (const index of open) shares[index] = equal;
      break;
    }
    for (const index of modest) {
      shares[index] = needs[index]!.mostBytes;
      rest -= needs[index]!.mostBytes;
    }
    open = open.filter((index) => !modest.includes(index));
  }
  const takers =
    needs.length === 1
      ? 'the model takes without its KV cache'
      : `${needs.length} models take without their KV caches, shared by these`;
  const from = `${available.bytes} bytes by ${available.from}, less ${taken} that ${takers}`;
  return shares.map((bytes) => ({ bytes, from }));
}
