import { getHeapStatistics } from 'node:v8';
import { availableMemory } from '../../../kvcache/available-memory.js';
import type { RunningModel } from '../../serving/running-model.js';
import { largestBodyMemory } from '../web/memory/memory-estimates.js';

/** Share, for requests, of the memory left once models are loaded and their caches full. */
const SHARE_OF_MEMORY = 1 / 4;
/** Share of the main thread's heap for requests: the rest is for garbage, code, and all that belongs to no request. */
const SHARE_OF_HEAP = 1 / 2;
/** Least bytes for other requests in addition to the largest one. */
const MIN_BESIDE_LARGEST = 64 * 1024 * 1024;

export interface MemoryAround {
  /** Bytes of memory still available to this process. */
  availableBytes: number;
  /** Most bytes of these that KV caches may yet take. */
  kvCacheBytes: number;
  /** V8's limit on the main thread's heap, in bytes. */
  heapBytes: number;
  maxBodyBytes: number;
}

/** Default limit, in bytes, on what all requests together hold. */
export function heldMemoryLimit({
  availableBytes,
  kvCacheBytes,
  heapBytes,
  maxBodyBytes,
}: MemoryAround): number {
  const left = Math.max(0, availableBytes - kvCacheBytes);
  const share = Math.min(SHARE_OF_MEMORY * left, SHARE_OF_HEAP * heapBytes);
  return Math.floor(Math.max(share, MIN_BESIDE_LARGEST + largestBodyMemory(maxBodyBytes)));
}

/** The default limit of a server with these models loaded. */
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
