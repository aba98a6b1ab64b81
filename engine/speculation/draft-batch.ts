import { PackedArrays } from '../batch/packed-arrays.js';
import { SamplingRows } from '../batch/sampling-rows.js';
import type { LlmRequest } from '../request/llm-request.js';
import type { DraftCaches } from './draft-caches.js';

/** Places [start, end) of a sequence and its draft. */
export interface DraftRows {
  start: number;
  end: number;
  /** True if the rows reach the end of the draft: the last row draws its next token. */
  draws: boolean;
}

/** Packs one round of the draft model. All arrays are made once, except histories, which grow as needed. */
export class DraftBatch extends PackedArrays {
  /** Sampling parameters of the rows in logitRows, the same as the model itself has for these places. */
  readonly sampling: SamplingRows;
  readonly #caches: DraftCaches;

  constructor(maxNumTokens: number, maxNumSequences: number, caches: DraftCaches) {
    const { kvCache, rope } = caches;
    const { maxBlocksPerSequence, numBlocks: newBlocks } = kvCache;
    const rows = { tokens: maxNumTokens, sequences: maxNumSequences, logitRows: maxNumSequences };
    super({ ...rows, maxBlocksPerSequence, newBlocks }, rope);
    this.#caches = caches;
    this.sampling = new SamplingRows(maxNumSequences, 0);
  }

  override clear(): void {
    super.clear();
    this.sampling.clear();
  }

  /** Appends rows of a request, whose cache has blocks for them and holds all tokens in front of them. */
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
    this.#addStates(request, sequence, start, end);
    if (!draws) return;
    this.logitRows[this.numLogitRows] = this.numTokens - 1;
    this.sampling.add(request, request.live[0]!, end - request.numTokens);
    // A draft's log-probs are not used.
    this.sampling.numTopLogProbs[this.numLogitRows++] = -1;
  }

  /**
   * Notes where the sequence's states are. The newest token counts as a part of the draft: it is read again where nothing was drawn
   * behind it.
   */
  #addStates({ requestId, numTokens }: LlmRequest, sequence: number, start: number, end: number): void {
    const { kvCache } = this.#caches;
    if (kvCache.numStateSlots === 0) return;
    const drafts = Math.max(0, end - (numTokens - 1));
    this.stateSlots[sequence] = kvCache.stateSlotOf(requestId);
    this.stateDrafts[sequence] = drafts;
    this.stateReplays[sequence] = kvCache.passStates(requestId, { start, end, drafts });
    this.snapshotStart[sequence + 1] = 0;
  }

  /** Ends the packing: lists the blocks that this round is the first to write to. */
  finish(): void {
    const slots = this.slots.subarray(0, this.numTokens);
    this.numNewBlocks = this.#caches.kvCache.drainWrittenBlocks(slots, this.newBlocks);
  }
}
