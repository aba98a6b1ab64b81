import { expect } from 'vitest';
import { KvCacheManager, type KvCacheOptions } from '../../kvcache/kv-cache-manager.js';
import type { Retention } from '../../kvcache/retention.js';
import type { TokenSpan } from '../../scheduler/tokens/types.js';

export const SIZE = 8;

export function cache(options: Partial<KvCacheOptions> = {}): KvCacheManager {
  return new KvCacheManager({
    numBlocks: 12,
    tokensPerBlock: SIZE,
    maxSeqLen: 64,
    enableBlockReuse: true,
    maxEvents: 100,
    ...options,
  });
}

/** 1, 2, 3, ... */
export const count = (length: number, from = 1) => Int32Array.from({ length }, (_, index) => from + index);

export function tableOf(kv: KvCacheManager, requestId: bigint): number[] {
  const table = new Int32Array(8);
  return Array.from(table.subarray(0, kv.writeBlockTable(requestId, table, 0, 8)));
}

export interface Run {
  salt?: bigint;
  loraId?: bigint;
  retention?: Retention;
  /** See SharedPrefix. */
  spans?: readonly TokenSpan[];
  /** Leave the sequence in the cache. */
  stays?: boolean;
}

/** A request with one answer token: its context runs, then it ends. Returns what it found. */
export function run(kv: KvCacheManager, requestId: bigint, tokens: Int32Array, options: Run = {}) {
  const { salt = 0n, loraId = null, retention, spans, stays = false } = options;
  const shared = { tokens, salt, loraId, ...(retention ? { retention } : {}), ...(spans ? { spans } : {}) };
  expect(kv.addSequence(requestId, tokens.length, shared)).toBe(true);
  const found = kv.reuseOf(requestId);
  kv.checkIntegrity();
  kv.drainNewBlocks(new Int32Array(kv.numBlocks));
  kv.store(requestId, tokens, tokens.length);
  kv.checkIntegrity();
  if (!stays) kv.freeSequence(requestId);
  kv.checkIntegrity();
  return found;
}
