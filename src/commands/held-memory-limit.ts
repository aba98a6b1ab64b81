import { getHeapStatistics } from 'node:v8';
import { availableMemory } from '../../kvcache/available-memory.js';
import { largestBodyMemory } from '../server/memory-estimates.js';
import type { RunningModel } from '../serving/running-model.js';

/** Share of the memory that is left once models are loaded and their caches full. */
const SHARE_OF_MEMORY = 1 / 4;
/** Share of what the main thread's heap may hold: the rest is for garbage, for code, and for what is no request's. */
const SHARE_OF_HEAP = 1 / 2;
/** What there is beside the largest request. */
const LEAST_BESIDE_LARGEST = 64 * 1024 * 1024;

export interface MemoryAround {
  /** Bytes that this process may still take. */
  availableBytes: number;
  /** Bytes of them that KV caches have not taken yet, at most. */
  kvCacheBytes: number;
  /** Bytes that V8 lets the heap of the main thread have. */
  heapBytes: number;
  maxBodyBytes: number;
}

/** Bytes that all requests together may hold, where nobody has said how many. */
export function heldMemoryLimit({
  availableBytes,
  kvCacheBytes,
  heapBytes,
  maxBodyBytes,
}: MemoryAround): number {
  const left = Math.max(0, availableBytes - kvCacheBytes);
  const share = Math.min(SHARE_OF_MEMORY * left, SHARE_OF_HEAP * heapBytes);
  return Math.floor(Math.max(share, LEAST_BESIDE_LARGEST + largestBodyMemory(maxBodyBytes)));
}

/** The same beside models that are loaded. */
export function heldMemoryLimitBeside(loaded: readonly RunningModel[], maxBodyBytes: number): number {
  return heldMemoryLimit({
    availableBytes: availableMemory().bytes,
    kvCacheBytes: loaded.reduce(
      (sum, { kind, info }) => sum + (kind === 'generator' ? info.kvCacheBytes : 0),
      0,
    ),
    heapBytes: getHeapStatistics().heap_size_limit,
    maxBodyBytes,
  });
}
