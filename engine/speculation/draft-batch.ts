import { PackedArrays } from '../batch/packed-arrays.js';
import { SamplingRows } from '../batch/sampling-rows.js';
import type { LlmRequest } from '../request/llm-request.js';
import type { DraftCaches } from './draft-caches.js';
import type { HiddenRows } from './hidden-rows.js';

/** Places [start, end) of a sequence and its draft. */
export interface DraftRows {
  start: number;
  end: number;
  /** True if the rows reach the end of the draft: the last row draws its next token. */
  draws: boolean;
  /**
   * The head's own row of the draft's newest token, together with which it reads that token; absent: it reads
   * none of a draft.
   */
  ownRow?: Float32Array;
}

/** Packs one round of the draft model. All arrays are made once, except histories, which grow as needed. */
export class DraftBatch extends PackedArrays {
  /** Sampling parameters of the rows in logitRows, the same as the model itself has for these places. */
  readonly sampling: SamplingRows;
  /** Of a head: the rows together with which it reads tokens, and those that it makes [tokens x width]. */
  declare readonly rowInputs?: Float32Array;
  declare readonly keptRows?: Float32Array;
  readonly #caches: DraftCaches;
  readonly #rows: HiddenRows | null;

  /** @param hidden rows of the model, for its head; null: a draft model reads tokens alone */
  constructor(
    maxNumTokens: number,
    maxNumSequences: number,
    caches: DraftCaches,
    hidden: HiddenRows | null = null,
  ) {
    const { kvCache, rope } = caches;
    const { maxBlocksPerSequence, numBlocks: newBlocks } = kvCache;
    const rows = { tokens: maxNumTokens, sequences: maxNumSequences, logitRows: maxNumSequences };
    super({ ...rows, maxBlocksPerSequence, newBlocks }, rope);
    this.#caches = caches;
    this.#rows = hidden;
    if (hidden !== null) {
      this.rowInputs = new Float32Array(maxNumTokens * hidden.width);
      this.keptRows = new Float32Array(maxNumTokens * hidden.width);
    }
    this.sampling = new SamplingRows(maxNumSequences, 0);
  }

  override clear(): void {
    super.clear();
    this.sampling.clear();
  }

  /** Appends rows of a request, whose cache has blocks for them and holds all tokens in front of them. */
  add(request: LlmRequest, { start, end, draws, ownRow }: DraftRows): void {
    const { requestId, tokens } = request;
    const { kvCache } = this.#caches;
    const sequence = this.numSequences++;
    const first = this.numTokens;
    // Places in the cache. RoPE depends on how far they are apart alone.
    const base = this.#caches.baseOf(request);
    for (let place = start; place < end; place++) {
      this.tokenIds[first + place - start] = tokens[place]!;
      this.positions[first + place - start] = place - base;
    }
    this.#addRowInputs(request, first, { start, end, ownRow });
    kvCache.writeSlots(requestId, start - base, end - base, this.slots, first);
    kvCache.writeBlockTable(requestId, this.blockTables, sequence * this.maxBlocks, this.maxBlocks);
    this.numTokens = first + end - start;
    this.queryStart[sequence] = first;
    this.queryStart[sequence + 1] = this.numTokens;
    this.contextLength[sequence] = end - base;
    this.ropeRows[sequence] = this.#caches.ropeRow(request);
    this.#addStates(request, sequence, start, end);
    if (!draws) return;
    this.logitRows[this.numLogitRows] = this.numTokens - 1;
    this.sampling.add(request, request.live[0]!, end - request.numTokens);
    // A draft's log-probs are not used.
    this.sampling.numTopLogProbs[this.numLogitRows++] = -1;
  }

  /**
   * Each token is read together with the row of the place before it: the model's, or after its newest token
   * the head's own.
   */
  #addRowInputs(
    { requestId, numTokens }: LlmRequest,
    first: number,
    { start, end, ownRow }: { start: number; end: number; ownRow: Float32Array | undefined },
  ): void {
    if (this.#rows === null) return;
    const { width } = this.#rows;
    for (let place = start; place < end; place++) {
      const row = place < numTokens ? this.#rows.rowOf(requestId, place - 1) : ownRow!;
      this.rowInputs!.set(row, (first + place - start) * width);
    }
  }

  /**
   * Notes where the sequence's states are. The newest token counts as a part of the draft: it is read again where nothing was drawn
   * after it.
   */
  #addStates({ requestId, numTokens }: LlmRequest, sequence: number, start: number, end: number): void {
    const { kvCache } = this.#caches;
    const { states } = kvCache;
    if (states === null) return;
    const drafts = Math.max(0, end - (numTokens - 1));
    this.stateSlots[sequence] = states.slotOf(requestId);
    this.stateDrafts[sequence] = drafts;
    this.stateReplays[sequence] = states.pass(requestId, { start, end, drafts });
    this.snapshotStart[sequence + 1] = 0;
  }

  /** Ends the packing: lists the blocks that this round is the first to write to. */
  finish(): void {
    const slots = this.slots.subarray(0, this.numTokens);
    this.numNewBlocks = this.#caches.kvCache.drainWrittenBlocks(slots, this.newBlocks);
  }
}
