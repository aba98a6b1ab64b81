import type { KvCacheManager } from '../../kvcache/kv-cache-manager.js';
import type { CallLimits } from '../packed-call/call-limits.js';
import type { CallMemory } from '../packed-call/call-memory.js';
import type { PromptTableRows, ReturnedRows } from '../packed-call/packed-batch.js';
import type { LlmRequest } from '../request/llm-request.js';
import { rowsToRepeat } from '../request/repeated-steps.js';
import type { GeneratedSequence } from '../sequences/generated-sequence.js';
import { GridPositions, nameImageRows } from './grid-positions.js';
import { PackedArrays } from './packed-arrays.js';
import type { RopeTable } from './rope-table.js';
import { SamplingRows } from './sampling-rows.js';

export interface BatchLimits {
  maxNumTokens: number;
  maxNumSequences: number;
  /** Most rows of logits for draft tokens, besides one row for each of maxNumSequences; default 0. */
  maxDraftRows?: number;
  /** Most sequences of padding rows, besides the maxNumSequences of requests; default 0. */
  maxPaddingSequences?: number;
}

/** Rows of a step's logits that belong to one request, one row for each of its sequences. */
export interface RequestRows {
  readonly request: LlmRequest;
  readonly firstRow: number;
  readonly sequences: readonly GeneratedSequence[];
}

/** Limits of calls that pack the requests of a cache. */
export function callLimits(limits: BatchLimits, kvCache: KvCacheManager): CallLimits {
  const { maxNumTokens, maxNumSequences, maxPaddingSequences = 0, maxDraftRows = 0 } = limits;
  const { numBlocks, tokensPerBlock, maxSeqLen, maxBlocksPerSequence } = kvCache;
  // The pool holds the tokens of all scheduled sequences except those being drawn. With reuse, shared tokens count only
  // once there; with a window, only a part of a longer sequence is there.
  const isWholeInPool = !kvCache.enableBlockReuse && kvCache.window === null;
  const tokensOfPool = isWholeInPool ? numBlocks * tokensPerBlock : Number.POSITIVE_INFINITY;
  return {
    tokens: maxNumTokens,
    sequences: maxNumSequences + maxPaddingSequences,
    logitRows: maxNumSequences + maxDraftRows,
    maxBlocksPerSequence,
    newBlocks: numBlocks,
    snapshots: kvCache.states?.mostSnapshots(maxNumTokens, maxNumSequences) ?? 0,
    history: Math.min(maxNumSequences * maxSeqLen, tokensOfPool + maxNumSequences),
  };
}

/** Packs the scheduled requests of one iteration. All arrays are made beforehand; nothing allocates while packing. */
export class BatchFormer extends PackedArrays {
  /** Rows whose logits are returned; empty in most iterations. */
  readonly returnedRows: ReturnedRows[] = [];
  /** Rows with embeddings of their requests; empty in most iterations. */
  readonly promptTables: PromptTableRows[] = [];
  /** Rows whose logits a post-processor sees before they are sampled; empty in most iterations. */
  readonly processedRows: RequestRows[] = [];
  /** Rows that may draw only tokens that their guides allow; empty in most iterations. */
  readonly guidedRows: RequestRows[] = [];
  /** See PackedBatch; null where no head drafts. */
  readonly keptRows: Float32Array | null;
  /** See PackedBatch; null in most iterations. */
  adapterSlots: Int32Array | null = null;
  /** Sampling parameters of the rows in logitRows. */
  readonly sampling: SamplingRows;
  readonly #adapterSlots: Int32Array;
  /** First row and number of rows of each picture that is attended to both ways. */
  readonly #pictures: number[] = [];
  #pictureRows: Int32Array | null = null;
  readonly #grids = new GridPositions();
  readonly #kvCache: KvCacheManager;
  #nextPaddingBlock: number;

  /** @param keptWidth width of the rows that are kept for a head; 0: none are */
  constructor(memory: CallMemory, kvCache: KvCacheManager, rope: RopeTable, keptWidth = 0) {
    const { limits } = memory;
    super(limits, rope, memory.batch);
    this.keptRows = keptWidth === 0 ? null : new Float32Array(limits.tokens * keptWidth);
    this.#kvCache = kvCache;
    this.sampling = new SamplingRows(limits.logitRows, limits.history, memory.sampling);
    this.#adapterSlots = new Int32Array(limits.sequences);
    this.#nextPaddingBlock = kvCache.numBlocks;
  }

  /** See PackedBatch; null in iterations without pictures. */
  get gridPositions(): Int32Array | null {
    return this.#grids.written;
  }

  /** See PackedBatch; null in iterations without pictures that are attended to both ways. */
  get pictures(): Int32Array | null {
    return this.#pictureRows;
  }

  override clear(): void {
    super.clear();
    this.#pictures.length = 0;
    this.#pictureRows = null;
    this.returnedRows.length = 0;
    this.promptTables.length = 0;
    this.processedRows.length = 0;
    this.guidedRows.length = 0;
    this.adapterSlots = null;
    this.#grids.clear();
    this.#nextPaddingBlock = this.#kvCache.numBlocks;
    this.sampling.clear();
  }

  /**
   * Appends the request's rows: its context chunk, or the newest token of each of its sequences, and its draft. The
   * request's tables already cover them. Requests in context come first.
   *
   *   request    A (context chunk, last)   B (3 beams)     C    D (draft of 2)
   *   tokenIds   a4 a5 a6                  b9  b'9  b"9    c2   d7 d8 d9
   *   sequences  0                         1   2    3      4    5            each with a block table of its own
   *   logitRows  2                         3   4    5      6    7  8  9      row 2 once for each sequence of A
   *
   * @param adapterSlot slot of the request's adapter, for all its sequences; -1: it has none
   */
  add(request: LlmRequest, adapterSlot = -1): void {
    const firstSequence = this.numSequences;
    if (request.phase === 'context') this.#addContext(request);
    else this.#addGeneration(request);
    if (adapterSlot < 0) return;
    this.adapterSlots ??= this.#adapterSlots.fill(-1);
    this.adapterSlots.fill(adapterSlot, firstSequence, this.numSequences);
  }

  /** Takes an adapter off the sequences that have it: their results do not count. */
  dropAdapter(slot: number): void {
    const { adapterSlots } = this;
    adapterSlots?.forEach((of, sequence) => {
      if (of === slot) adapterSlots[sequence] = -1;
    });
  }

  #addContext(request: LlmRequest): void {
    const start = request.contextPosition;
    const end = start + request.chunkLength;
    const first = this.numTokens;
    this.#addRows(request, { table: 0, tokens: request.tokens, start, end });
    const { promptTable, positions } = request.spec;
    if (promptTable !== null) {
      this.promptTables.push({ first, count: end - start, table: promptTable.values });
      nameImageRows(promptTable, this.tokenIds.subarray(first, this.numTokens), start);
    }
    for (const picture of request.wholeSpans ?? [])
      if (picture.start >= start && picture.end <= end)
        this.#pictures.push(first + picture.start - start, picture.end - picture.start);
    if (positions?.hasGrids) this.#grids.add(positions, { start, end, first });
    request.returned?.askForContext(this.returnedRows, start, end, first);
    this.#noteProcessed(request);
    for (const sequence of request.rows) this.#addDraw(request, sequence);
  }

  #addGeneration(request: LlmRequest): void {
    const end = request.numTokens;
    this.#noteProcessed(request);
    for (const [table, sequence] of request.rows.entries()) {
      this.#addRows(request, {
        table,
        tokens: sequence.tokens,
        start: end - 1,
        end: end + request.draftLength,
      });
      for (let ahead = 0; ahead <= request.draftLength; ahead++) this.#addDraw(request, sequence, ahead);
    }
  }

  /** Notes that the request's rows, which are added next, go to a post-processor or have masks. */
  #noteProcessed(request: LlmRequest): void {
    const { postProcessor, guide } = request.spec;
    if ((postProcessor === null && guide === null) || request.rows.length === 0) return;
    const rows = { request, firstRow: this.numLogitRows, sequences: request.rows };
    if (postProcessor !== null) this.processedRows.push(rows);
    if (guide !== null) this.guidedRows.push(rows);
  }

  /** Appends places [start, end) of one of the request's sequences, whose block table has the index `table`. */
  #addRows(
    request: LlmRequest,
    { table, tokens, start, end }: { table: number; tokens: Int32Array; start: number; end: number },
  ): void {
    const { requestId, ropeRow } = request;
    const sequence = this.numSequences++;
    const first = this.numTokens;
    for (let place = start; place < end; place++) {
      this.tokenIds[first + place - start] = tokens[place]!;
      this.positions[first + place - start] = request.positionAt(place);
    }
    const { maxBlocks } = this;
    this.#kvCache.writeSlots(requestId, start, end, this.slots, first, table);
    this.#kvCache.writeBlockTable(requestId, this.blockTables, sequence * maxBlocks, maxBlocks, table);
    this.numTokens = first + end - start;
    this.queryStart[sequence] = first;
    this.queryStart[sequence + 1] = this.numTokens;
    this.contextLength[sequence] = end;
    this.ropeRows[sequence] = ropeRow;
    this.#addStates(request, sequence, { table, start, end, first });
  }

  /**
   * Notes where the sequence's states are, which of its rows are a draft, and where its step makes snapshots of them: of one
   * sequence, or of a prompt.
   */
  #addStates(
    request: LlmRequest,
    sequence: number,
    { table, start, end, first }: { table: number; start: number; end: number; first: number },
  ): void {
    const { states } = this.#kvCache;
    if (states === null) return;
    const { requestId, phase, beamWidth, draftLength } = request;
    this.stateSlots[sequence] = states.slotOf(requestId, table);
    const drafts = phase === 'context' ? 0 : draftLength + rowsToRepeat(request, this.#kvCache);
    const span = { start, end, drafts };
    this.stateDrafts[sequence] = span.drafts;
    this.stateReplays[sequence] = states.pass(requestId, span);
    let next = sequence === 0 ? 0 : this.snapshotStart[sequence]!;
    this.snapshotStart[sequence] = next;
    const makesSome = table === 0 && (phase === 'context' || beamWidth === 1);
    for (const { position, slot } of makesSome ? states.takeSnapshots(requestId, span) : []) {
      this.snapshotRows[next] = first + position - 1 - start;
      this.snapshotSlots[next++] = slot;
    }
    this.snapshotStart[sequence + 1] = next;
  }

  /**
   * Adds a draw for the sequence: its newest row draws a token, or among the rows of a draft the one after
   * its first `ahead` tokens.
   */
  #addDraw(request: LlmRequest, sequence: GeneratedSequence, ahead = 0): void {
    const { returned } = request;
    if (returned !== null && request.drawsNewToken(sequence)) {
      if (request.beams === null) returned.askForGeneration(this.returnedRows, this.numLogitRows);
      else returned.askForBeam(this.returnedRows, this.numLogitRows, sequence);
    }
    this.logitRows[this.numLogitRows++] = this.numTokens - 1 - request.draftLength + ahead;
    this.sampling.add(request, sequence, ahead);
  }

  /**
   * Appends padding: rows at positions [start, end) of a sequence that belongs to no request. Its K and V go to the
   * blocks after the pool, which no request's table ever names; positions in front of `start` are read from
   * them too, whatever they hold.
   *
   *   tokensPerBlock 4, rows 6..9         position  0 1 2 3 | 4 5 6 7 | 8 9
   *   the pool has blocks 0..31           table        32   |    32   |  33
   *                                       rows                   * *     * *
   *
   * With an attention window these blocks take turns like those of requests.
   *
   * `drawsToken`: the last row also computes logits and draws a token, which is never read.
   */
  addPadding(start: number, end: number, drawsToken: boolean): void {
    const { tokensPerBlock, window } = this.#kvCache;
    const sequence = this.numSequences++;
    const first = this.numTokens;
    const firstEntry = Math.floor(start / tokensPerBlock);
    const lastEntry = Math.floor((end - 1) / tokensPerBlock);
    const table = sequence * this.maxBlocks;
    const entryOf = (index: number) => table + (window?.entryOf(index) ?? index);
    this.blockTables.fill(0, table, table + this.maxBlocks);
    for (let index = 0; index <= lastEntry; index++) {
      this.blockTables[entryOf(index)] = this.#nextPaddingBlock + Math.max(0, index - firstEntry);
    }
    this.#nextPaddingBlock += lastEntry - firstEntry + 1;
    for (let position = start; position < end; position++) {
      const row = first + position - start;
      const block = this.blockTables[entryOf(Math.floor(position / tokensPerBlock))]!;
      this.tokenIds[row] = 0;
      this.positions[row] = position;
      this.slots[row] = block * tokensPerBlock + (position % tokensPerBlock);
    }
    this.numTokens = first + end - start;
    this.queryStart[sequence] = first;
    this.queryStart[sequence + 1] = this.numTokens;
    this.contextLength[sequence] = end;
    this.ropeRows[sequence] = 0;
    this.stateSlots[sequence] = -1;
    this.stateDrafts[sequence] = 0;
    this.stateReplays[sequence] = 0;
    this.snapshotStart[sequence + 1] = sequence === 0 ? 0 : this.snapshotStart[sequence]!;
    if (!drawsToken) return;
    this.logitRows[this.numLogitRows++] = this.numTokens - 1;
    this.sampling.addEmpty();
  }

  /** Ends the packing: lists the blocks that this iteration is the first to write to, and writes positions in grids. */
  finish(): void {
    const slots = this.slots.subarray(0, this.numTokens);
    this.numNewBlocks = this.#kvCache.drainWrittenBlocks(slots, this.newBlocks);
    this.#grids.write(this.positions, this.numTokens);
    if (this.#pictures.length > 0) this.#pictureRows = Int32Array.from(this.#pictures);
  }
}
