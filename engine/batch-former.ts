import type { KvCacheManager } from '../kvcache/kv-cache-manager.js';
import { SamplingRows } from './decoding/sampling-rows.js';
import type { LlmRequest } from './llm-request.js';
import type { PackedBatch } from './packed-batch.js';
import type { RopeTable } from './rope-table.js';

export interface BatchLimits {
  maxNumTokens: number;
  maxNumSequences: number;
}

/** Packs the scheduled requests of one iteration. All arrays are made once; nothing allocates while packing. */
export class BatchFormer implements PackedBatch {
  numTokens = 0;
  numSequences = 0;
  numLogitRows = 0;
  numNewBlocks = 0;
  readonly maxBlocks: number;
  readonly tokenIds: Int32Array;
  readonly positions: Int32Array;
  readonly slots: Int32Array;
  readonly queryStart: Int32Array;
  readonly contextLength: Int32Array;
  readonly blockTables: Int32Array;
  readonly logitRows: Int32Array;
  readonly newBlocks: Int32Array;
  readonly ropeRows: Int32Array;
  readonly ropeFrequencies: Float32Array;
  readonly ropeScales: Float32Array;
  /** Sampling parameters of the rows in logitRows. */
  readonly sampling: SamplingRows;
  readonly #kvCache: KvCacheManager;

  constructor(limits: BatchLimits, kvCache: KvCacheManager, rope: RopeTable) {
    const { maxNumTokens, maxNumSequences } = limits;
    this.#kvCache = kvCache;
    this.maxBlocks = kvCache.maxBlocksPerSequence;
    this.tokenIds = new Int32Array(maxNumTokens);
    this.positions = new Int32Array(maxNumTokens);
    this.slots = new Int32Array(maxNumTokens);
    this.queryStart = new Int32Array(maxNumSequences + 1);
    this.contextLength = new Int32Array(maxNumSequences);
    this.blockTables = new Int32Array(maxNumSequences * this.maxBlocks);
    this.logitRows = new Int32Array(maxNumSequences);
    this.newBlocks = new Int32Array(kvCache.numBlocks);
    this.ropeRows = new Int32Array(maxNumSequences);
    this.ropeFrequencies = rope.frequencies;
    this.ropeScales = rope.scales;
    // Scheduled sequences have their tokens in the pool, all but the one being drawn for.
    const tokensOfPool = kvCache.numBlocks * kvCache.tokensPerBlock;
    const maxHistory = Math.min(maxNumSequences * kvCache.maxSeqLen, tokensOfPool + maxNumSequences);
    this.sampling = new SamplingRows(maxNumSequences, maxHistory);
  }

  /** Empties the batch. */
  clear(): void {
    this.numTokens = 0;
    this.numSequences = 0;
    this.numLogitRows = 0;
    this.numNewBlocks = 0;
    this.sampling.clear();
  }

  /**
   * Appends the request's rows: its context chunk, or its newest token. Its table already covers them. Requests in
   * context come first.
   */
  add(request: LlmRequest): void {
    const start = request.phase === 'context' ? request.contextPosition : request.numTokens - 1;
    const count = request.phase === 'context' ? request.chunkLength : 1;
    const sequence = this.numSequences++;
    const first = this.numTokens;
    const { tokens } = request;
    for (let i = 0; i < count; i++) {
      this.tokenIds[first + i] = tokens[start + i]!;
      this.positions[first + i] = start + i;
    }
    this.#kvCache.writeSlots(request.requestId, start, start + count, this.slots, first);
    this.#kvCache.writeBlockTable(
      request.requestId,
      this.blockTables,
      sequence * this.maxBlocks,
      this.maxBlocks,
    );
    this.numTokens = first + count;
    this.queryStart[sequence] = first;
    this.queryStart[sequence + 1] = this.numTokens;
    this.contextLength[sequence] = start + count;
    this.ropeRows[sequence] = request.ropeRow;
    if (!request.drawsToken) return;
    this.logitRows[this.numLogitRows++] = this.numTokens - 1;
    this.sampling.add(request);
  }

  /** Ends the packing: lists the blocks that this iteration's tables were given. */
  finish(): void {
    this.numNewBlocks = this.#kvCache.drainNewBlocks(this.newBlocks);
  }
}
