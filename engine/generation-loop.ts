import type { EngineFormation } from '../callbacks/formation.js';
import { failure } from '../callbacks/request-failure.js';
import type { BlockContents, OfferedBlocks } from '../callbacks/worker-messages.js';
import type { PromptBlocks } from '../kvcache/block-hashes.js';
import type { KvCacheManager, KvCacheStats } from '../kvcache/kv-cache-manager.js';
import type { ContextPace } from '../scheduler/tokens/context-pace.js';
import type { IterationPlanner } from './iteration-planner.js';
import type { BlockTransfer } from './loop/block-transfer.js';
import type { CallRunner } from './loop/call-runner.js';
import type { DiskCache } from './loop/disk-cache.js';
import type { DraftStage } from './loop/draft-stage.js';
import type { FlightRecorder } from './loop/flight-recorder.js';
import { formationOf } from './loop/formation.js';
import type { GuidedDecoding } from './loop/guided-decoding.js';
import { type Chunks, type Iteration, newIteration } from './loop/iteration.js';
import type { IterationReporter } from './loop/iteration-reporter.js';
import type { MicroBatchSplit } from './loop/micro-batch-split.js';
import type { RequestExit } from './loop/request-exit.js';
import type { RequestIntake } from './loop/request-intake.js';
import type { RequestStops } from './loop/request-stops.js';
import type { TokenUpdate } from './loop/token-update.js';
import type { PeftCacheManager } from './peft/peft-cache-manager.js';
import type { ActiveRequests } from './request/active-requests.js';
import type { LlmRequest } from './request/llm-request.js';
import type { BatchingScheme } from './schemes/batching-scheme.js';

/** Parts of an iteration, in the order in which it uses them; assembleLoop makes them. */
export interface LoopParts {
  /** Milliseconds since the epoch, monotonic. */
  clock: () => number;
  kvCache: KvCacheManager;
  active: ActiveRequests<LlmRequest>;
  intake: RequestIntake;
  guided: GuidedDecoding;
  planner: IterationPlanner;
  /** null: all scheduled requests run together. */
  split: MicroBatchSplit | null;
  /** null: requests get no drafts. */
  drafts: DraftStage | null;
  scheme: BatchingScheme;
  calls: CallRunner;
  update: TokenUpdate;
  stops: RequestStops;
  exit: RequestExit;
  /** Caches of adapters; null: requests have none. */
  adapters: PeftCacheManager | null;
  /** Checks the caches after every iteration. */
  checksIntegrity: boolean;
  transfer: BlockTransfer;
  /** null: blocks are kept in memory alone. */
  disk: DiskCache | null;
  recorder: FlightRecorder;
  reporter: IterationReporter;
  /** null: contexts are as long as the room allows. */
  pace: ContextPace | null;
}

/** The token generation loop: one call of `iterate` is one iteration. It knows nothing of threads. */
export class GenerationLoop {
  readonly #parts: LoopParts;
  /** Iteration that was not started, because it could not run together with the running ones. */
  #unstarted: Iteration | null = null;

  constructor(parts: LoopParts) {
    this.#parts = parts;
  }

  /** Number of requests that could be taken now. */
  get freePlaces(): number {
    return this.#parts.intake.freePlaces;
  }

  get activeRequests(): number {
    return this.#parts.active.size;
  }

  get isDraining(): boolean {
    return this.#parts.intake.isDraining;
  }

  /** From now on refuses new requests; active ones go on. */
  drain(): void {
    this.#parts.intake.drain();
  }

  /** Snapshot of all requests in flight, for monitoring. */
  formation(): EngineFormation {
    const { active, kvCache, recorder, reporter, clock } = this.#parts;
    return formationOf(active.ordered, kvCache, reporter.iteration, recorder.take(clock()));
  }

  /**
   * Forgets the blocks that the KV cache keeps for later prompts; called between two iterations; see
   * KvCacheManager.dropReusable.
   */
  resetCache(): number {
    const { kvCache, disk, checksIntegrity, reporter } = this.#parts;
    const dropped = kvCache.dropReusable();
    disk?.reset();
    if (checksIntegrity) kvCache.checkIntegrity();
    reporter.reportEvents(this.freePlaces);
    return dropped;
  }

  /** True until what lay on the disk when the cache was reset is erased. */
  get isErasing(): boolean {
    return this.#parts.disk?.isErasing ?? false;
  }

  /** True while cached blocks wait to be written to the disk. */
  get isWriting(): boolean {
    return this.#parts.disk?.isBehind ?? false;
  }

  /** Content of cached blocks of the prompt; called between two iterations; see BlockTransfer. */
  readBlocks(prompt: PromptBlocks, maxBytes: number): BlockContents {
    return this.#parts.transfer.read(prompt, maxBytes);
  }

  /** Number of cached blocks of the prompt; called between two iterations; see BlockTransfer. */
  countBlocks(prompt: PromptBlocks): number {
    return this.#parts.transfer.count(prompt);
  }

  /** Makes blocks that another engine has computed cached ones; called between two iterations; see BlockTransfer. */
  writeBlocks(prompt: PromptBlocks, blocks: OfferedBlocks): number {
    const { transfer, reporter } = this.#parts;
    const has = transfer.write(prompt, blocks);
    this.#checkIntegrity();
    reporter.reportEvents(this.freePlaces);
    return has;
  }

  /** Forgets a task's adapter once no request uses it; called between two iterations. */
  forgetAdapter(taskId: bigint): void {
    this.#parts.adapters?.forget(taskId);
  }

  /**
   * Runs one iteration. Returns false if nothing was active and there was nothing to send.
   *
   * Where micro-batches take turns it starts one, and then updates and answers the oldest, which has ended:
   *
   *   iterate    receive  schedule 1  pack 1  | end of 0, start of 1 |  update 0  stops  respond  report 0
   *   executor   --------- step 0 ------------|                      |--------- step 1 -------------------
   */
  iterate(): boolean {
    const { clock, kvCache, disk, intake, drafts, scheme, calls, update, stops, exit } = this.#parts;
    const before = calls.running;
    const iteration = this.#nextIteration(before);
    kvCache.advanceClock(clock());
    const hasWritten = disk?.advance(this.activeRequests > 0) ?? false;
    intake.receive(iteration.counts);
    const chunks = this.#schedule(iteration);
    drafts?.propose(chunks);
    const batches = scheme.calls(chunks);
    for (const batch of batches) update.apply(calls.start(batch, iteration));
    if (batches.length === 0) update.apply(calls.finish());
    const ended = this.#endedIterations(before, iteration);
    const blocks = { ...kvCache.stats(), disk: disk?.stats() ?? null };
    stops.pollSignals();
    stops.endOverdue(clock());
    exit.respond((ended[0] ?? iteration).counts);
    this.#checkIntegrity();
    const hasReported = this.#report(ended, blocks);
    return hasReported || hasWritten || calls.running.length > 0;
  }

  /** The iteration that this call of `iterate` will start, in addition to those that run. */
  #nextIteration(running: readonly Iteration[]): Iteration {
    const { reporter, clock } = this.#parts;
    const number = reporter.iteration + 1 + new Set(running).size;
    const iteration = this.#unstarted ?? newIteration(number, clock());
    iteration.microBatchId = 0;
    while (running.some(({ microBatchId }) => microBatchId === iteration.microBatchId))
      iteration.microBatchId++;
    return iteration;
  }

  /**
   * The iterations that have ended, oldest first: this one where nothing runs in parallel with the loop,
   * otherwise those that ran before and do not run any more. There are two at most, and only where an
   * iteration has several calls.
   */
  #endedIterations(before: readonly Iteration[], iteration: Iteration): readonly Iteration[] {
    const { running } = this.#parts.calls;
    const isAlone = before.length === 0 && running.length === 0;
    const ended = isAlone ? [iteration] : [...new Set(before)].filter((one) => !running.includes(one));
    this.#unstarted = isAlone || running.includes(iteration) ? null : iteration;
    return ended;
  }

  #report(ended: readonly Iteration[], blocks: KvCacheStats): boolean {
    const { reporter } = this.#parts;
    if (ended.length === 0) return reporter.report(null, blocks, this.freePlaces);
    let hasReported = false;
    for (const one of ended) {
      hasReported = reporter.report(one, blocks, this.freePlaces) || hasReported;
      this.#learnFrom(one);
    }
    return hasReported;
  }

  /**
   * Decides which requests run now, and how many tokens each; requests that have to pause first give back their blocks.
   */
  #schedule({ number, counts }: Iteration): Chunks {
    const { active, guided, disk, planner, split, drafts, recorder, reporter, calls, clock } = this.#parts;
    counts.activeRequests = active.size;
    if (active.size === 0) return [];
    active.promoteAged();
    const guidedOnes = guided.ready(active.running);
    const running = disk?.ready(guidedOnes) ?? guidedOnes;
    const { chunks, paused } = planner.plan(running, split);
    for (const request of paused) {
      drafts?.release(request);
      recorder.notePause(request.requestId, number, clock());
    }
    counts.pausedRequests += paused.length;
    reporter.reportTurns(chunks, paused);
    const isIdle = chunks.length === 0 && paused.length === 0 && calls.running.length === 0;
    // A request that waits for its masks may hold blocks that the others need.
    const waits = running.length === 0 || running.some((request) => request.isHeld);
    if (isIdle && waits) this.#waitAWhile();
    else if (isIdle) this.#failStuckRequest(running[0]!);
    return chunks;
  }

  #waitAWhile(): void {
    this.#parts.guided.waitAWhile();
    this.#parts.disk?.waitAWhile();
  }

  /** Cannot happen as long as admission and schedulers agree; if they do not, one request fails instead of all hanging. */
  #failStuckRequest(head: LlmRequest): void {
    head.failure = failure(
      'internal',
      'Nothing could be scheduled although nothing was running; this request was first in line.',
    );
  }

  #checkIntegrity(): void {
    const { checksIntegrity, kvCache, adapters, drafts } = this.#parts;
    if (!checksIntegrity) return;
    kvCache.checkIntegrity();
    adapters?.checkIntegrity();
    drafts?.checkIntegrity();
  }

  /** Learns from the time of an iteration how long the next contexts and drafts should be. */
  #learnFrom(ended: Iteration): void {
    if (ended.counts.executorMs <= 0) return;
    const { pace, drafts, reporter } = this.#parts;
    pace?.note(ended.counts, reporter.iterationMs);
    drafts?.noteStep(ended.counts);
  }
}
