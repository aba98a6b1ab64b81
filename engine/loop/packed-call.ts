import { failure } from '../../callbacks/request-failure.js';
import type { KvCacheManager } from '../../kvcache/kv-cache-manager.js';
import { contextPairs } from '../../scheduler/tokens/iteration-cost.js';
import type { RequestRows } from '../batch/batch-former.js';
import { BatchFormer, type BatchLimits, callLimits } from '../batch/batch-former.js';
import type { RopeTable } from '../batch/rope-table.js';
import { SamplingResults } from '../decoding/sampling-results.js';
import type { IterationPlanner } from '../iteration-planner.js';
import { CallMemory } from '../packed-call/call-memory.js';
import type { PeftCacheManager } from '../peft/peft-cache-manager.js';
import type { LlmRequest } from '../request/llm-request.js';
import type { BatchingScheme } from '../schemes/batching-scheme.js';
import type { KeptRows } from '../speculation/hidden-rows.js';
import { modelMayDraft } from '../speculation/may-draft.js';
import type { FlightRecorder } from './flight-recorder.js';
import { GuideMasks } from './guide-masks.js';
import type { GuidedDecoding } from './guided-decoding.js';
import type { Chunks, EndedCall, Iteration } from './iteration.js';
import type { RowFailures } from './logits-stage.js';
import type { IterationCounts } from './loop-statistics.js';
import { StepAdapters } from './step-adapters.js';

/** Parts of the loop that packing a call uses. */
export interface CallParts {
  planner: IterationPlanner;
  scheme: BatchingScheme;
  kvCache: KvCacheManager;
  /** null: requests have no adapters. */
  adapters: PeftCacheManager | null;
  guided: GuidedDecoding;
  recorder: FlightRecorder;
  clock: () => number;
  /** Width of the rows that are kept for a head; 0: none are. */
  keptWidth: number;
}

/**
 * One call of the executor, from allocating its requests' blocks to its results. Its memory is reused for later calls.
 */
export class PackedCall {
  readonly batch: BatchFormer;
  readonly output: SamplingResults;
  /** Requests whose draws do not count; filled between forward and sampling. */
  readonly failures: RowFailures = new Map();
  /** Requests whose masks have not come in time: their draws do not count. */
  readonly late = new Set<LlmRequest>();
  readonly #masks: GuideMasks;
  readonly #adapters: StepAdapters;
  readonly #parts: CallParts;
  readonly #keptOf: KeptRows[] = [];
  #chunks: Chunks = [];
  #iteration: Iteration | null = null;

  /** @param room greatest size of the call */
  constructor(room: BatchLimits, rope: RopeTable, parts: CallParts) {
    const limits = callLimits(room, parts.kvCache);
    const memory = new CallMemory(new ArrayBuffer(CallMemory.sizeOf(limits)), limits);
    this.batch = new BatchFormer(memory, parts.kvCache, rope, parts.keptWidth);
    this.output = new SamplingResults(limits.logitRows, memory.output);
    this.#masks = new GuideMasks(limits.logitRows);
    this.#adapters = new StepAdapters(parts.adapters);
    this.#parts = parts;
  }

  get isEmpty(): boolean {
    return this.batch.numSequences === 0;
  }

  /** True if JavaScript has to read its logits: forward and sampling are then two calls of the executor. */
  get isSplit(): boolean {
    return this.batch.processedRows.length > 0 || this.batch.guidedRows.length > 0;
  }

  get iteration(): Iteration {
    return this.#iteration!;
  }

  /** Gives each request its blocks and its adapter's slot and packs its rows. A request that gets none fails and is left out. */
  pack(chunks: Chunks, iteration: Iteration): void {
    const { planner, scheme, recorder, clock } = this.#parts;
    const { counts } = iteration;
    this.#chunks = chunks;
    this.#iteration = iteration;
    this.batch.clear();
    this.failures.clear();
    this.late.clear();
    this.#keptOf.length = 0;
    this.#adapters.begin(chunks);
    const nowMs = clock();
    for (const { request, contextTokens } of chunks) {
      const isFirstChunk = request.phase === 'context' && request.contextPosition === 0;
      request.chunkLength = contextTokens;
      const adapterSlot = this.#adapters.slotOf(request);
      if (adapterSlot === null || !planner.allocate(request)) {
        const what = adapterSlot === null ? 'cache of adapters had no slot' : 'KV cache had no block';
        request.failure = failure(
          'internal',
          `The ${what} left for a request that it had room for when it was scheduled.`,
        );
        continue;
      }
      const { requestId, contextPosition, chunkLength } = request;
      if (contextTokens > 0 && chunkLength === 0) continue;
      if (contextTokens > 0) counts.contextRequests++;
      else counts.generationRequests++;
      if (contextTokens > 0) {
        const chunk = { from: contextPosition, tokens: chunkLength, isLast: request.drawsToken };
        recorder.noteChunk(requestId, iteration.number, chunk, nowMs);
      }
      counts.contextTokens += chunkLength;
      counts.contextPairs += contextPairs(contextPosition, chunkLength);
      if (contextTokens === 0) counts.generationRows += request.beamWidth + request.draftLength;
      if (request.draftLength > 0) counts.drafts++;
      counts.draftedTokens += request.draftLength;
      if (isFirstChunk && this.#parts.planner.sharedOf(request) !== null) this.#countReuse(request, counts);
      request.timing.noteScheduled(nowMs);
      const firstRow = this.batch.numTokens;
      this.batch.add(request, adapterSlot);
      if (this.batch.keptRows !== null) this.#noteKept(request, firstRow);
    }
    for (const { of, count } of this.batch.returnedRows) if (of === 'tokens') counts.returnedRows += count;
    if (!this.isEmpty) counts.emptyGenerationSlots += scheme.pad(this.batch, chunks);
    this.batch.finish();
    this.output.makeRoom(this.batch.sampling);
    const { guidedRows } = this.batch;
    if (guidedRows.length > 0) this.#parts.guided.ask(guidedRows);
  }

  /** Waits a moment for the masks that `pack` asked for. `forwardMs`: time that the forward took. */
  awaitMasks(forwardMs: number): void {
    const { guidedRows, sampling } = this.batch;
    if (guidedRows.length === 0) return;
    const { late, failures } = this;
    const wait = { masks: this.#masks, forwardMs, late, failures };
    sampling.tokenMasks = this.#parts.guided.finish(guidedRows, wait);
  }

  /** Rows for post-processors; without requests whose masks are late, which get them when the masks have come. */
  get processedRows(): readonly RequestRows[] {
    const { processedRows } = this.batch;
    return this.late.size === 0
      ? processedRows
      : processedRows.filter(({ request }) => !this.late.has(request));
  }

  /** Marks its requests that have not failed. */
  setInFlight(inFlight: boolean): void {
    for (const { request } of this.#chunks) request.inFlight = inFlight && request.failure === null;
  }

  /** Fails the call's requests with this reason, except those that have failed already. */
  fail(reason: string): void {
    for (const { request } of this.#chunks) {
      request.failure ??= failure(
        'internal',
        `The executor failed in iteration ${this.iteration.number}: ${reason}`,
      );
    }
  }

  /** Fails the call's requests whose adapter could not be put into its slot; the others run without them. */
  failSlot(slot: number, reason: string): void {
    for (const { request } of this.#chunks) {
      if (request.failure !== null || request.adapter === null || this.#adapters.slotOf(request) !== slot)
        continue;
      const text = `The executor could not take the adapter ${request.adapter.taskId} of this request: ${reason}`;
      this.failures.set(request, failure('internal', text));
    }
    this.batch.dropAdapter(slot);
  }

  /** Result of the call once it has run or has failed. */
  end(hasRun: boolean): EndedCall {
    this.#adapters.end();
    const output = hasRun ? this.output : null;
    return {
      chunks: this.#chunks,
      iteration: this.iteration,
      output,
      failures: this.failures,
      late: this.late,
      keptRows: this.batch.keptRows,
      keptOf: this.#keptOf,
    };
  }

  #noteKept(request: LlmRequest, firstRow: number): void {
    if (!modelMayDraft(request)) return;
    const { phase, contextPosition, numTokens } = request;
    const place = phase === 'context' ? contextPosition : numTokens - 1;
    this.#keptOf.push({ request, place, firstRow, count: this.batch.numTokens - firstRow });
  }

  #countReuse({ promptLength, contextPosition }: LlmRequest, counts: IterationCounts): void {
    counts.queriedTokens += promptLength;
    counts.reusedTokens += contextPosition;
  }
}
