import { messageOf } from '../../base/error-text.js';
import type { KvCacheManager } from '../../kvcache/kv-cache-manager.js';
import type { RopeTable } from '../batch/rope-table.js';
import { SamplingResults } from '../decoding/sampling-results.js';
import type { Executor } from '../executors/executor.js';
import { ROW_NOT_FINITE, ROW_OK } from '../packed-call/sampling-batch.js';
import type { LlmRequest } from '../request/llm-request.js';
import { DraftBatch, type DraftRows } from './draft-batch.js';
import { DraftCaches } from './draft-caches.js';
import { DraftCost } from './draft-cost.js';
import type { HiddenRows, KeptRows } from './hidden-rows.js';
import { modelMayDraft } from './may-draft.js';

export interface DraftModelParts {
  /** Runs the draft model, which has the same vocabulary. */
  executor: Executor;
  /** The draft model's own pool, without reuse and windows. */
  kvCache: KvCacheManager;
  rope: RopeTable;
  /** Guess for the cost of a round until it was measured, as a share of the model's own step. */
  costShare: number;
  clock: () => number;
  /** Rows of the model, where its own head drafts. Absent: a draft model does, which needs none. */
  hidden?: HiddenRows;
  /** Called once, when the draft model has failed and will not be asked again. */
  onFailure: (error: Error) => void;
}

/** A request for a draft by the draft model. */
export interface WantedDraft {
  request: LlmRequest;
  /** Number of tokens in the draft, at least 1. */
  length: number;
}

interface GrowingDraft extends WantedDraft {
  drawn: number;
  tokens: Int32Array;
  /** Of a head: its row of the token that was drawn last. */
  ownRow?: Float32Array;
}

/** Most rows of a sequence in a round: more are a part of its prompt. */
const ROWS_OF_A_ROUND = 2;
/** The same of a head, which reads again what was accepted of its last draft. */
const ROWS_OF_A_HEAD = 12;

/**
 * A smaller model of the same vocabulary that draws drafts, one token of each in a round:
 *
 *   round 1   A: g8 g9   B: g4    the tokens that its cache does not have; the last row of each draws
 *   round 2   A: d1      B: d1
 *   round 3   A: d2               B wanted two
 *
 * It draws with the parameters of the request and the random numbers of the place: if its distribution is like that of
 * the model, the same numbers give the same token. A sequence whose prompt it has not read yet is read in round 1, as far
 * as there is room in the executor's step, and has a draft once it is read completely.
 *
 * Errors here only cost speed, since drafts are verified.
 *
 * A model's own head drafts in the same way. It has read no prompt by itself: with each token it reads the
 * row that the model made of the place before (hidden-rows.ts), and with the tokens of its draft its own
 * rows:
 *
 *   round 1   A: (g8, row of g7) (g9, row of g8)     the last row draws d1, and becomes o1
 *   round 2   A: (d1, o1)                            draws d2, and becomes o2
 */
export class DraftModel {
  readonly #parts: DraftModelParts;
  readonly #caches: DraftCaches;
  readonly #batch: DraftBatch;
  readonly #output: SamplingResults;
  readonly #cost: DraftCost;
  readonly #rowsOfARound: number;
  #hasFailed = false;

  constructor(parts: DraftModelParts) {
    const { maxNumTokens, maxNumSequences } = parts.executor.options;
    this.#parts = parts;
    const { kvCache, rope, hidden = null } = parts;
    this.#caches = hidden === null ? new DraftCaches(kvCache, rope) : new HeadCaches(kvCache, rope, hidden);
    this.#batch = new DraftBatch(maxNumTokens, maxNumSequences, this.#caches, hidden);
    this.#rowsOfARound = hidden === null ? ROWS_OF_A_ROUND : ROWS_OF_A_HEAD;
    this.#output = new SamplingResults(maxNumSequences);
    this.#cost = new DraftCost(parts.costShare);
  }

  /**
   * Most tokens that a draft of the request may have now; 0 if the request brought draft logits, which its tokens are drawn
   * against, positions of its own, or embeddings in its prompt.
   */
  mostTokens(request: LlmRequest): number {
    const { spec, numTokens } = request;
    if (this.#hasFailed || !modelMayDraft(request)) return 0;
    if (spec.draftLogits !== null || spec.positions !== null) return 0;
    const { hidden, kvCache } = this.#parts;
    if (hidden !== undefined && hidden.firstOf(request) === undefined) return 0;
    return Math.max(0, kvCache.maxSeqLen - numTokens);
  }

  /** Width of the rows that the model has to keep for its head; 0: there is none, or it has failed. */
  get keptWidth(): number {
    return this.#hasFailed ? 0 : (this.#parts.hidden?.width ?? 0);
  }

  /** Notes the first `count` rows of a step that the model has kept for its head. */
  noteRows({ request, place, firstRow }: KeptRows, count: number, rows: Float32Array): void {
    const { hidden } = this.#parts;
    if (hidden === undefined || this.#hasFailed) return;
    hidden.note(request.requestId, place, rows.subarray(firstRow * hidden.width), count);
  }

  /** Milliseconds of a round, if the model's own step of as many rows takes `stepMs`. */
  roundCost(stepMs: number): number {
    return this.#cost.ofRound(stepMs);
  }

  /** Milliseconds until it can draw for the request, if the model itself takes `ownMs` for each token that it reads. */
  readingCost(request: LlmRequest, ownMs: number): number {
    const unread = this.#caches.unread(request);
    return unread <= this.#rowsOfARound ? 0 : unread * this.#cost.ofReading(ownMs);
  }

  noteIdleStep(): void {
    this.#cost.noteIdleStep();
  }

  /**
   * Gives the requests their drafts (`LlmRequest.setDraft`), none or a shorter one if that is all that is possible now.
   * `costOf`: milliseconds of the model's own step by its number of rows.
   */
  draw(wanted: readonly WantedDraft[], costOf: (rows: number) => number): void {
    if (this.#hasFailed) return;
    try {
      this.#draw(wanted, costOf);
    } catch (error) {
      this.#hasFailed = true;
      this.#caches.releaseAll();
      this.#parts.hidden?.releaseAll();
      const what = this.#parts.hidden === undefined ? 'The draft model' : "The model's head that drafts";
      const why = messageOf(error);
      this.#parts.onFailure(
        new Error(`${what} failed and drafts no more; requests go on without it: ${why}`),
      );
    }
  }

  /** Gives back the blocks held for a request that is paused or has ended. */
  release(request: LlmRequest): void {
    this.#caches.release(request);
    this.#parts.hidden?.release(request.requestId);
  }

  /** Throws a sentence naming the first inconsistency of its pool. */
  checkIntegrity(): void {
    this.#parts.kvCache.checkIntegrity();
  }

  #draw(wanted: readonly WantedDraft[], costOf: (rows: number) => number): void {
    const behind = new Map<LlmRequest, number>();
    for (const { request } of wanted) behind.set(request, request.numTokens - this.#caches.settle(request));
    const { maxNumSequences } = this.#parts.executor.options;
    let growing = wanted
      .filter(({ request, length }) => this.#caches.reserve(request, request.numTokens + length - 1))
      .map((draft): GrowingDraft => ({ ...draft, drawn: 0, tokens: new Int32Array(draft.length) }))
      // Requests that can draw at once come before those whose prompts must be read.
      .sort((a, b) => behind.get(a.request)! - behind.get(b.request)!)
      .slice(0, maxNumSequences);
    while (growing.length > 0) growing = this.#round(growing, costOf);
  }

  /** Runs a round; returns the drafts that are to have another token. */
  #round(growing: readonly GrowingDraft[], costOf: (rows: number) => number): GrowingDraft[] {
    const { executor, clock } = this.#parts;
    const rows = this.#pack(growing);
    const { sampling } = this.#batch;
    this.#output.makeRoom(sampling);
    const startMs = clock();
    executor.step(this.#batch, sampling, this.#output);
    const { numTokens } = this.#batch;
    const ms = clock() - startMs;
    if (numTokens > this.#rowsOfARound * rows.length) this.#cost.noteReading(numTokens, ms);
    else this.#cost.noteRound(ms, costOf(numTokens));
    let row = 0;
    return growing.slice(0, rows.length).filter((draft, i) => {
      const { end, draws } = rows[i]!;
      this.#caches.noteWritten(draft.request, end);
      this.#parts.hidden?.forgetBefore(draft.request.requestId, end - 1);
      return draws && this.#take(draft, row++);
    });
  }

  /** Packs as many of the drafts as there is room for. */
  #pack(growing: readonly GrowingDraft[]): DraftRows[] {
    const { maxNumTokens } = this.#parts.executor.options;
    const rows: DraftRows[] = [];
    this.#batch.clear();
    for (const { request, drawn, ownRow } of growing) {
      const room = maxNumTokens - this.#batch.numTokens;
      if (room === 0) break;
      const start = this.#caches.written(request);
      const last = request.numTokens + drawn;
      const end = Math.min(last, start + room);
      const added = { start, end, draws: end === last, ...(ownRow !== undefined && { ownRow }) };
      this.#batch.add(request, added);
      rows.push(added);
    }
    this.#batch.finish();
    return rows;
  }

  /** Takes a drawn token; returns true if the draft goes on after it. */
  #take(draft: GrowingDraft, row: number): boolean {
    const { request, tokens, length } = draft;
    const status = this.#output.status[row];
    if (this.#parts.hidden !== undefined) this.#takeRow(draft, row, this.#parts.hidden);
    if (status !== ROW_OK) return false;
    tokens[draft.drawn++] = this.#output.tokens[row]!;
    request.setDraft(tokens, draft.drawn);
    return draft.drawn < length;
  }

  /** Takes the head's own row of a place that has drawn. @throws Error where it made numbers that are not finite of finite ones */
  #takeRow(draft: GrowingDraft, row: number, { width }: HiddenRows): void {
    const { logitRows, rowInputs, keptRows } = this.#batch;
    const first = logitRows[row]! * width;
    if (
      this.#output.status[row] === ROW_NOT_FINITE &&
      rowInputs!.subarray(first, first + width).every(Number.isFinite)
    )
      throw new Error('what it made of finite numbers is not finite (NaN or infinity).');
    draft.ownRow = keptRows!.slice(first, first + width);
  }
}

/**
 * The caches of a model's head, which reads each token with the row of the place before it. A cache begins
 * with the first token that has such a row, and starts again where rows were forgotten before the head had
 * read them. What the head has written of a draft was made of its own rows, so it is written again once the
 * model has the right ones.
 */
class HeadCaches extends DraftCaches {
  readonly #rows: HiddenRows;

  constructor(kvCache: KvCacheManager, rope: RopeTable, rows: HiddenRows) {
    super(kvCache, rope);
    this.#rows = rows;
  }

  override settle(request: LlmRequest): number {
    const first = this.#firstToken(request);
    const cache = this.find(request);
    if (cache === undefined) return first;
    if (cache.length < first || cache.base > first) {
      this.release(request);
      return first;
    }
    cache.length = Math.min(cache.length, request.numTokens - 1);
    cache.ahead.length = 0;
    this.trim(request, cache);
    return cache.length;
  }

  override unread(request: LlmRequest): number {
    const length = Math.min(this.find(request)?.length ?? 0, request.numTokens - 1);
    return request.numTokens - Math.max(length, this.#firstToken(request));
  }

  override reserve(request: LlmRequest, length: number): boolean {
    return this.take(request, length, this.#firstToken(request));
  }

  /** Place of the first token that the head can read with the row before it. */
  #firstToken(request: LlmRequest): number {
    return (this.#rows.firstOf(request) ?? request.numTokens - 2) + 1;
  }
}
