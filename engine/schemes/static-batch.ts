import { schedulePaddedBatch } from '../../scheduler/tokens/padded-batch.js';
import type { ScheduledChunk } from '../../scheduler/tokens/types.js';
import type { BatchFormer } from '../batch/batch-former.js';
import type { LlmRequest } from '../request/llm-request.js';
import type { BatchingScheme } from './batching-scheme.js';

type Chunks = readonly ScheduledChunk<LlmRequest>[];

/**
 * V1: a batch runs in lockstep until its last request has ended; only then the next one starts.
 *
 *   step       0 (context)   1  2  3  4
 *   A          aaaaaaaa      a  a  .  .     ended in step 2: its slot runs on empty
 *   B          bbbbb...      b  b  b  b     a context padded to the longest
 *                                           4 live slots and then 2 empty ones: A and B answer after step 4
 *
 * Padding and empty slots are computed like any other row, so that the scheme has its true cost; they belong to no
 * request and have blocks of their own (BatchFormer.addPadding). A request that streams gets its tokens as they come
 * and its final response with the batch. One that failed, was cancelled or ran out of time leaves at once; its slot
 * stays. An empty slot's length grows with the others', but not beyond maxSeqLen.
 */
export class StaticBatchScheme implements BatchingScheme {
  readonly capacityPolicy = 'STATIC_BATCH';
  readonly scheduleMicroBatch = schedulePaddedBatch;
  readonly #maxSeqLen: number;
  /** Requests with which the running batch began, and the number of sequences that each had to run. */
  #members: readonly { request: LlmRequest; slots: number }[] = [];
  #generationSteps = 0;

  constructor(maxSeqLen: number) {
    this.#maxSeqLen = maxSeqLen;
  }

  calls(chunks: Chunks): Chunks[] {
    if (chunks.length === 0) return [];
    if (chunks[0]!.contextTokens > 0) {
      this.#members = chunks.map(({ request }) => ({ request, slots: request.beamWidth }));
      this.#generationSteps = 0;
    } else {
      this.#generationSteps++;
    }
    return [chunks];
  }

  pad(batch: BatchFormer, chunks: Chunks): number {
    if (this.#generationSteps > 0) return this.#padGeneration(batch);
    const longest = Math.max(...chunks.map(({ contextTokens }) => contextTokens));
    for (const { contextTokens } of chunks) {
      if (contextTokens < longest) batch.addPadding(contextTokens, longest, false);
    }
    return 0;
  }

  holds(request: LlmRequest): boolean {
    if (request.failure !== null || request.isStopped) return false;
    const isMember = this.#members.some((member) => member.request === request);
    return isMember && this.#members.some((member) => !member.request.isComplete);
  }

  #padGeneration(batch: BatchFormer): number {
    let empty = 0;
    for (const { request, slots } of this.#members) {
      const ended = slots - (request.isComplete ? 0 : request.live.length);
      const length = Math.min(request.promptLength + this.#generationSteps, this.#maxSeqLen);
      for (let slot = 0; slot < ended; slot++) batch.addPadding(length - 1, length, true);
      empty += ended;
    }
    return empty;
  }
}
