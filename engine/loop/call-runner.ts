import { messageOf } from '../../base/error-text.js';
import type { KvCacheManager } from '../../kvcache/kv-cache-manager.js';
import { type Executor, ExecutorLostError } from '../executors/executor.js';
import type { PeftCacheManager } from '../peft/peft-cache-manager.js';
import type { Chunks, EndedCall, Iteration } from './iteration.js';
import type { LogitsStage } from './logits-stage.js';
import type { PackedCall } from './packed-call.js';
import type { RunningStep } from './running-step.js';
import { changeSlots } from './step-adapters.js';

/**
 * Runs calls of the executor. A call that throws fails only its own requests, except for an ExecutorLostError, which is
 * rethrown.
 */
export interface CallRunner {
  /** The iteration whose call runs while the loop goes on; null: none. */
  readonly running: Iteration | null;
  /** Packs a call and starts it. Returns the call that has ended, if any: this one, or the one that ran before. */
  start(chunks: Chunks, iteration: Iteration): EndedCall | null;
  /** Waits for the running call; null if there is none. */
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
  readonly running = null;
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
 * Two calls take turns: while one runs on a thread of the executor, the loop updates and answers the one before it, then
 * receives, schedules and packs the next one.
 *
 *   loop       pack 0 |begin 0| pack 1       |finish 0, begin 1| update 0, respond, schedule, pack 0 |finish 1, begin 0| ...
 *   executor                  |---- step 0 ---|                |--------------- step 1 --------------|                |---
 *
 * Memory changes only in steps and in the copies right in front of them, and these never run side by side. So a block
 * that the update of 0 gives back while step 1 runs, and that the next 0 is given, is zeroed when step 1 has ended:
 *
 *   block 7    in a table of 0      free       in a new table of 0 (or 1)
 *              step 0 |             | step 1 runs, 7 is in none of its tables     | step 0: zeroes 7, writes it
 *                     update 0: 7 is given back, pack 0: 7 is handed out
 *
 * Requests in flight hold their blocks, and are neither paused nor freed, so no block that a step reads or writes is handed
 * out while it runs. The same holds for slots of adapters: a step holds those of its requests, and others are filled between the
 * steps. Blocks that both micro-batches read are shared ones, full and never written again; if one is copied or
 * swapped, that is done between the steps too.
 *
 * A micro-batch whose logits JavaScript has to read cannot run on another thread: it runs in the loop's own, at the point
 * where others are waited for.
 *
 * A micro-batch without another beside it runs in the loop's own thread, as without overlap: there is nothing to hide behind
 * it, and waking another thread twice would only cost time.
 */
export class OverlappedCalls implements CallRunner {
  readonly #parts: RunnerParts;
  #next: PackedCall;
  #other: PackedCall;
  #running: PackedCall | null = null;
  #beganMs = 0;
  readonly #split: { readonly runsTogether: boolean };
  readonly #runningStep: RunningStep;

  constructor(
    parts: RunnerParts,
    calls: readonly [PackedCall, PackedCall],
    split: { readonly runsTogether: boolean },
    runningStep: RunningStep,
  ) {
    this.#parts = parts;
    this.#split = split;
    this.#runningStep = runningStep;
    [this.#next, this.#other] = calls;
  }

  get running(): Iteration | null {
    return this.#runningStep.iteration;
  }

  start(chunks: Chunks, iteration: Iteration): EndedCall | null {
    const call = this.#next;
    call.pack(chunks, iteration);
    if (this.#split.runsTogether) return step(call, this.#parts);
    const ended = this.finish();
    if (call.isEmpty) call.end(false);
    else this.#begin(call);
    return ended;
  }

  finish(): EndedCall | null {
    const call = this.#running;
    if (call === null) return null;
    this.#running = null;
    this.#runningStep.iteration = null;
    call.setInFlight(false);
    if (call.isSplit) return compute(call, this.#parts);
    let hasRun = false;
    try {
      this.#parts.executor.finish();
      hasRun = true;
    } catch (error) {
      failCall(call, error);
    }
    call.iteration.counts.executorMs += this.#parts.clock() - this.#beganMs;
    return call.end(hasRun);
  }

  #begin(call: PackedCall): void {
    const { executor, clock } = this.#parts;
    this.#beganMs = clock();
    prepareMemory(call, this.#parts);
    try {
      if (!call.isSplit) executor.begin(call.batch, call.batch.sampling, call.output);
    } catch (error) {
      failCall(call, error);
      call.end(false);
      return;
    }
    call.setInFlight(true);
    this.#running = call;
    this.#runningStep.iteration = call.iteration;
    [this.#next, this.#other] = [this.#other, this.#next];
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
function compute(call: PackedCall, { executor, logitsStage, clock }: RunnerParts): EndedCall {
  const { batch, output, iteration } = call;
  let startMs = clock();
  let hasRun = false;
  try {
    if (call.isSplit) {
      const logits = executor.forward(batch);
      const forwardMs = clock() - startMs;
      call.awaitMasks(forwardMs);
      logitsStage.run(call.processedRows, logits, executor.vocabSize, call.failures);
      startMs = clock() - forwardMs;
      executor.sample(batch.sampling, output);
    } else executor.step(batch, batch.sampling, output);
    hasRun = true;
  } catch (error) {
    failCall(call, error);
  }
  iteration.counts.executorMs += clock() - startMs;
  return call.end(hasRun);
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
 * Copies blocks before the step that zeroes and writes the blocks handed out with them. A failed copy is no single
 * request's failure, since cached blocks might then have the wrong content: the loop ends with it, and all its requests
 * fail.
 */
function copyBlocks({ executor, kvCache }: RunnerParts): void {
  const copies = kvCache.drainCopies();
  if (copies) executor.copyBlocks(copies.source, copies.target);
}
