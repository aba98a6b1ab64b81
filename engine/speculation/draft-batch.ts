import { SamplingRows } from '../decoding/sampling-rows.js';
import type { LlmRequest } from '../llm-request.js';
import type { PackedBatch } from '../packed-batch.js';
import type { DraftCaches } from './draft-caches.js';

/** Places [start, end) of a sequence and its draft. */
export interface DraftRows {
  start: number;
  end: number;
  /** They reach the end of its draft: the last row draws the next token of it. */
  draws: boolean;
}

/** Packs one round of the draft model. All arrays are made once, but for histories, which grow as they are needed. */
export class DraftBatch implements PackedBatch {
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
  /** Sampling parameters of the rows in logitRows: those that the same places have in the model itself. */
  readonly sampling: SamplingRows;
  readonly #caches: DraftCaches;

  constructor(maxNumTokens: number, maxNumSequences: number, caches: DraftCaches) {
    const { kvCache, rope } = caches;
    this.#caches = caches;
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
    this.sampling = new SamplingRows(maxNumSequences, 0);
  }

  /** Empties the batch. */
  clear(): void {
    this.numTokens = 0;
    this.numSequences = 0;
    this.numLogitRows = 0;
    this.numNewBlocks = 0;
    this.sampling.clear();
  }

  /** Appends rows of a request, whose cache has blocks for them and holds what is in front of them. */
  add(request: LlmRequest, { start, end, draws }: DraftRows): void {
    const { requestId, tokens } = request;
    const { kvCache } = this.#caches;
    const sequence = this.numSequences++;
    const first = this.numTokens;
    for (let place = start; place < end; place++) {
      this.tokenIds[first + place - start] = tokens[place]!;
      this.positions[first + place - start] = place;
    }
    kvCache.writeSlots(requestId, start, end, this.slots, first);
    kvCache.writeBlockTable(requestId, this.blockTables, sequence * this.maxBlocks, this.maxBlocks);
    this.numTokens = first + end - start;
    this.queryStart[sequence] = first;
    this.queryStart[sequence + 1] = this.numTokens;
    this.contextLength[sequence] = end;
    this.ropeRows[sequence] = this.#caches.ropeRow(request);
    if (!draws) return;
    this.logitRows[this.numLogitRows] = this.numTokens - 1;
    this.sampling.add(request, request.live[0]!, end - request.numTokens);
    // Nobody reads a draft's log-probs.
    this.sampling.numTopLogProbs[this.numLogitRows++] = -1;
  }

  /** Ends the packing: lists the blocks that were taken since the last round. */
  finish(): void {
    this.numNewBlocks = this.#caches.kvCache.drainNewBlocks(this.newBlocks);
  }
}
