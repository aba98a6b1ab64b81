import type { KvCacheManager } from '../../kvcache/kv-cache-manager.js';
import { blocksForNextStep } from '../../scheduler/tokens/block-needs.js';
import type { LlmRequest } from '../request/llm-request.js';
import { rowsToRepeat } from '../request/repeated-steps.js';
import { longestDraftInWindow } from '../speculation/draft-lengths.js';
import type { DraftCandidate, DraftPolicy, DraftRoom } from '../speculation/draft-policy.js';
import { mayDraft, mayJump } from '../speculation/may-draft.js';
import type { GuidedDecoding } from './guided-decoding.js';
import type { Chunks, EndedCall } from './iteration.js';
import type { IterationCounts } from './loop-statistics.js';

export interface DraftStageOptions {
  maxNumTokens: number;
  /** Rows of logits that the executor has for drafts, besides one for each sequence. */
  maxDraftRows: number;
  /**
   * Drafts may take free blocks, since no other request is scheduled until they are given back. False with
   * overlap: while a draft is in flight the other micro-batch is scheduled, and must find as many blocks as
   * without drafts.
   */
  takesBlocks: boolean;
}

/**
 * Gives sequences their drafts after the schedulers, which know nothing of drafts. So drafts get only blocks and tokens
 * that are left over, and never pause, delay or shorten any request:
 *
 *   maxNumTokens    | contexts | generation |  drafts  | unused
 *   free blocks     | what this step's chunks take |  drafts  | free
 *
 * The blocks that a rejected draft leaves empty are given back when its step's results are read, before anything else
 * is scheduled.
 */
export class DraftStage {
  readonly #policy: DraftPolicy;
  readonly #guided: GuidedDecoding;
  readonly #kvCache: KvCacheManager;
  readonly #options: DraftStageOptions;

  constructor(
    { policy, guided }: { policy: DraftPolicy; guided: GuidedDecoding },
    kvCache: KvCacheManager,
    options: DraftStageOptions,
  ) {
    this.#policy = policy;
    this.#guided = guided;
    this.#kvCache = kvCache;
    this.#options = options;
  }

  /** Gives drafts to the requests of an iteration that has been scheduled and not yet packed. */
  propose(chunks: Chunks): void {
    const room = this.#room(chunks);
    if (room.spareRows <= 0) return;
    const jumping = this.#candidates(chunks, room, mayJump);
    const drafting = this.#candidates(chunks, room, mayDraft);
    if (jumping.length + drafting.length === 0) return;
    const spareBlocks = this.#spareBlocks(chunks);
    for (const candidate of jumping) this.#jump(candidate, room);
    if (room.spareRows > 0 && drafting.length > 0) {
      this.#policy.draft(jumping.length > 0 ? within(drafting, room.spareRows) : drafting, room);
    }
    this.#fitIntoBlocks([...jumping, ...drafting], spareBlocks);
  }

  /** Generating requests among these that may have another token after the newest one. */
  #candidates(
    chunks: Chunks,
    { spareRows }: DraftRoom,
    mayHaveOne: (request: LlmRequest) => boolean,
  ): DraftCandidate[] {
    const candidates: DraftCandidate[] = [];
    for (const { request, contextTokens } of chunks) {
      if (contextTokens > 0 || !mayHaveOne(request)) continue;
      const most = Math.min(spareRows, this.#mostTokens(request));
      if (most > 0) candidates.push({ request, most });
    }
    return candidates;
  }

  /**
   * Takes the tokens that a guide forces, before other drafts and even together with contexts: these tokens
   * need their rows in any case, now or one by one later.
   */
  #jump({ request, most }: DraftCandidate, room: DraftRoom): void {
    const tokens = this.#guided.forcedBehind(request);
    const { maxDraftLen } = request.spec;
    const length = Math.min(tokens.length, most, room.spareRows, maxDraftLen ?? tokens.length);
    if (length <= 0) return;
    request.setDraft(tokens, length);
    room.rows += request.draftLength;
    room.spareRows -= request.draftLength;
  }

  /** Notes that a draft of `drafted` tokens was verified and its first `accepted` ones were right. */
  noteVerified(request: LlmRequest, drafted: number, accepted: number): void {
    const source = request.spec.guide === null ? this.#policy : this.#guided;
    source.noteVerified(request, drafted, accepted);
  }

  /** Hands over the rows that a step has kept: of each sequence those of its tokens but the newest, which no step has read yet. */
  noteRows({ keptRows, keptOf }: Pick<EndedCall, 'keptRows' | 'keptOf'>): void {
    if (keptRows === null) return;
    for (const kept of keptOf) {
      const { request, place, count } = kept;
      if (request.failure !== null) continue;
      this.#policy.noteRows?.(kept, Math.min(count, request.numTokens - 1 - place), keptRows);
    }
  }

  /** Notes the work and time of an iteration that has ended. */
  noteStep({ contextTokens, generationRows, executorMs }: IterationCounts): void {
    this.#policy.noteStep(generationRows, contextTokens, executorMs);
  }

  /** Forgets a request that is paused or leaves. */
  release(request: LlmRequest): void {
    this.#policy.release(request);
  }

  /** Throws if a cache that belongs to the drafts contradicts itself. */
  checkIntegrity(): void {
    this.#policy.checkIntegrity();
  }

  #room(chunks: Chunks): DraftRoom {
    let contextTokens = 0;
    let rows = 0;
    for (const chunk of chunks) {
      contextTokens += chunk.contextTokens;
      rows += chunk.contextTokens > 0 ? chunk.contextTokens : chunk.request.beamWidth;
    }
    const { maxNumTokens, maxDraftRows } = this.#options;
    return { rows, contextTokens, spareRows: Math.min(maxNumTokens - rows, maxDraftRows) };
  }

  /**
   * Most tokens of a draft: one beyond the last token cannot be used; one beyond the window would write over tokens
   * that are still attended to; one beyond the executor's log of states could not be taken back.
   */
  #mostTokens(request: LlmRequest): number {
    const { window, tokensPerBlock, longestDraft } = this.#kvCache;
    const left = request.maxNewTokens - request.generatedLength - 1;
    const logged = longestDraft - rowsToRepeat(request, this.#kvCache);
    return Math.min(left, logged, longestDraftInWindow(window, request.numTokens, tokensPerBlock));
  }

  /** Blocks that are free once every chunk of the step has its own. */
  #spareBlocks(chunks: Chunks): number {
    if (!this.#options.takesBlocks) return 0;
    const capacity = this.#kvCache.capacity();
    let spare = capacity.freeBlocks;
    for (const { request } of chunks) spare -= blocksForNextStep(request, capacity);
    return Math.max(0, spare);
  }

  /** Cuts drafts that need more blocks than are free. */
  #fitIntoBlocks(candidates: readonly DraftCandidate[], spareBlocks: number): void {
    let spare = spareBlocks;
    for (const { request } of candidates) {
      const without = this.#kvCache.blocksOf(request.numTokens);
      const taken = () => this.#kvCache.blocksOf(request.numTokens + request.draftLength) - without;
      while (request.draftLength > 0 && taken() > spare) request.draftLength--;
      spare -= taken();
    }
  }
}

function within(candidates: readonly DraftCandidate[], spareRows: number): DraftCandidate[] {
  return candidates.map(({ request, most }) => ({ request, most: Math.min(most, spareRows) }));
}
