import { messageOf } from '../../base/error-text.js';
import type { KvCacheManager } from '../../kvcache/kv-cache-manager.js';
import { type Executor, ExecutorLostError } from '../executors/executor.js';
import type { PeftCacheManager } from '../peft/peft-cache-manager.js';
import type { Chunks, EndedCall, Iteration, RunningSteps } from './iteration.js';
import type { LogitsStage } from './logits-stage.js';
import type { PackedCall } from './packed-call.js';
import { changeSlots } from './step-adapters.js';

/**
 * Runs calls of the executor. A call that throws fails only its own requests, except for an ExecutorLostError, which is
 * rethrown.
 */
export interface CallRunner {
  /** The iterations whose calls run while the loop goes on, oldest call first. */
  readonly running: readonly Iteration[];
  /** Packs a call and starts it. Returns the call that has ended, if any: this one, or the oldest that ran before. */
  start(chunks: Chunks, iteration: Iteration): EndedCall | null;
  /** Waits for the oldest running call; null if there is none. */
  finish(): EndedCall | null;
}

export interface RunnerParts {
  executor: Executor;
  /** Runs post-processors on the logits of split calls. */
  logitsStage: LogitsStage;
  kvCache: KvCacheManager;
  /** null: requests have no adapters. */
  adapters: PeftCacheManager | null;
  clock: () => number;
}

/** Runs one call after the other; the loop waits for each. */
export class SerialCalls implements CallRunner {
  readonly running = [];
  readonly #parts: RunnerParts;
  readonly #call: PackedCall;

  constructor(parts: RunnerParts, call: PackedCall) {
    this.#parts = parts;
    this.#call = call;
  }

  start(chunks: Chunks, iteration: Iteration): EndedCall {
    this.#call.pack(chunks, iteration);
    return step(this.#call, this.#parts);
  }

  finish(): null {
    return null;
  }
}

/**
 * Calls take turns: while some run in the executor, the loop updates and answers the one that has ended, then receives,
 * schedules and packs the next one. With two calls and an executor that runs one at a time:
 *
 *   loop       pack 0 |begin 0| pack 1       |finish 0, begin 1| update 0, respond, schedule, pack 0 |finish 1, begin 0| ...
 *   executor                  |---- step 0 ---|                |--------------- step 1 --------------|                |---
 *
 * An executor of several stages runs as many steps as it has stages, each in another one. Then each call is begun before the
 * oldest is finished, so that no stage waits for the loop with nothing to do:
 *
 *   loop       begin 0, begin 1 | finish 0 | update 0, pack 0 | begin 0, finish 1 | update 1, pack 1 | begin 1, finish 0 | ...
 *   stage 0    |-- 0 --|-- 1 --|                              |-- 0 --|                              |-- 1 --|
 *   stage 1            |-- 0 --|-- 1 --|                              |-- 0 --|                              |-- 1 --|
 *
 * A request is in one call at a time. Memory changes only in steps and in the copies right in front of them. No stage does two of
 * these side by side, and all do them in the order in which calls are begun. So a block that the update of 0 gives back while
 * step 1 runs, and that the next 0 is given, is zeroed when step 1 has ended:
 *
 *   block 7    in a table of 0      free       in a new table of 0 (or 1)
 *              step 0 |             | step 1 runs, 7 is in none of its tables     | step 0: zeroes 7, writes it
 *                     update 0: 7 is given back, pack 0: 7 is handed out
 *
 * Requests in flight hold their blocks, and are neither paused nor freed, so no block that a step reads or writes is handed
 * out while it runs. The same holds for slots of adapters: a step holds those of its requests, and others are filled between the
 * steps. Blocks that several micro-batches read are shared ones, full and never written again; if one is copied or
 * swapped, that is done between the steps too.
 *
 * A micro-batch whose logits JavaScript has to read is sampled when it is finished. Where the executor cannot begin its forward
 * alone, that runs in the loop's own thread too, at the point where others are waited for.
 *
 * A micro-batch that runs alone does so in the loop's own thread, as without turns: there is nothing to hide
 * behind it, and waking another thread twice would only cost time.
 */
export class OverlappedCalls implements CallRunner {
  readonly #parts: RunnerParts;
  /** Calls that do not run. */
  readonly #free: PackedCall[];
  readonly #most: number;
  readonly #running: { call: PackedCall; beganMs: number }[] = [];
  #finishedMs = Number.NEGATIVE_INFINITY;
  readonly #split: { readonly runsTogether: boolean };
  readonly #runningSteps: RunningSteps;

  /** @param calls as many as there are micro-batches that take turns */
  constructor(
    parts: RunnerParts,
    calls: readonly PackedCall[],
    split: { readonly runsTogether: boolean },
    runningSteps: RunningSteps,
  ) {
    this.#parts = parts;
    this.#split = split;
    this.#runningSteps = runningSteps;
    this.#free = [...calls];
    this.#most = calls.length;
  }

  get running(): readonly Iteration[] {
    return this.#runningSteps.iterations;
  }

  start(chunks: Chunks, iteration: Iteration): EndedCall | null {
    const call = this.#free[0]!;
    call.pack(chunks, iteration);
    if (this.#split.runsTogether) return step(call, this.#parts);
    const { maxBegun = 1 } = this.#parts.executor;
    const before = this.#running.length < maxBegun ? null : this.finish();
    if (call.isEmpty) call.end(false);
    else this.#begin(call);
    return this.#running.length < this.#most ? before : this.finish();
  }

  finish(): EndedCall | null {
    const oldest = this.#running.shift();
    if (oldest === undefined) return null;
    this.#noteRunning();
    const { call, beganMs } = oldest;
    const { executor, clock } = this.#parts;
    this.#free.push(call);
    call.setInFlight(false);
    if (call.isSplit && executor.finishForward === undefined) return compute(call, this.#parts);
    // Time that several calls have shared counts once.
    let startMs = Math.max(beganMs, this.#finishedMs);
    let hasRun = false;
    try {
      if (call.isSplit) startMs = sampleSplit(call, executor.finishForward!(), startMs, this.#parts);
      else executor.finish();
      hasRun = true;
    } catch (error) {
      failCall(call, error);
    }
    this.#finishedMs = clock();
    call.iteration.counts.executorMs += this.#finishedMs - startMs;
    return call.end(hasRun);
  }

  #begin(call: PackedCall): void {
    const { executor, clock } = this.#parts;
    const beganMs = clock();
    prepareMemory(call, this.#parts);
    try {
      if (!call.isSplit) executor.begin(call.batch, call.batch.sampling, call.output);
      else executor.beginForward?.(call.batch);
    } catch (error) {
      failCall(call, error);
      call.end(false);
      return;
    }
    call.setInFlight(true);
    this.#free.shift();
    this.#running.push({ call, beganMs });
    this.#noteRunning();
  }

  #noteRunning(): void {
    this.#runningSteps.iterations = this.#running.map(({ call }) => call.iteration);
  }
}

/** Runs a packed call in this thread, unless it is empty. */
function step(call: PackedCall, parts: RunnerParts): EndedCall {
  if (call.isEmpty) return call.end(false);
  const startMs = parts.clock();
  prepareMemory(call, parts);
  call.iteration.counts.executorMs += parts.clock() - startMs;
  return compute(call, parts);
}

/** Makes one call of the executor, or two if post-processors run or masks are waited for in between. */
function compute(call: PackedCall, parts: RunnerParts): EndedCall {
  const { executor, clock } = parts;
  const { batch, output, iteration } = call;
  let startMs = clock();
  let hasRun = false;
  try {
    if (call.isSplit) startMs = sampleSplit(call, executor.forward(batch), startMs, parts);
    else executor.step(batch, batch.sampling, output);
    hasRun = true;
  } catch (error) {
    failCall(call, error);
  }
  iteration.counts.executorMs += clock() - startMs;
  return call.end(hasRun);
}

/**
 * Waits for masks, runs post-processors on the logits and samples from them.
 * @returns the start of the executor's work as if there had been no other in between
 */
function sampleSplit(
  call: PackedCall,
  logits: Float32Array,
  startMs: number,
  { executor, logitsStage, clock }: RunnerParts,
): number {
  const forwardMs = clock() - startMs;
  call.awaitMasks(forwardMs);
  logitsStage.run(call.processedRows, logits, executor.vocabSize, call.failures);
  const samplingMs = clock();
  executor.sample(call.batch.sampling, call.output);
  return samplingMs - forwardMs;
}

/**
 * Fails the requests of a call. A lost device is no batch's failure: everything in the cache is gone with it, and the
 * loop ends.
 */
function failCall(call: PackedCall, error: unknown): void {
  if (error instanceof ExecutorLostError) throw error;
  call.fail(messageOf(error));
}

/** Changes the executor's memory as the call needs it; while no step runs. */
function prepareMemory(call: PackedCall, parts: RunnerParts): void {
  copyBlocks(parts);
  changeSlots(parts.executor, parts.adapters, (slot, reason) => call.failSlot(slot, reason));
}

/**
 * Copies blocks and states before the step that zeroes and writes the blocks handed out with them. A failed copy is no single
 * request's failure, since cached blocks might then have the wrong content: the loop ends with it, and all its requests
 * fail.
 */
function copyBlocks({ executor, kvCache }: RunnerParts): void {
  const copies = kvCache.drainCopies();
  if (copies) executor.copyBlocks(copies.source, copies.target);
  const states = kvCache.states?.drainCopies() ?? null;
  if (states) executor.copyStates!(states.source, states.target);
}
