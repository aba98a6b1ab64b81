import { messageOf } from '../../base/error-text.js';
import { promiseOf } from '../../base/guarded-calls.js';
import { asSentence } from '../../base/sentences.js';
import { BATCHED_POST_PROCESSOR, type LogitsStream } from '../../callbacks/logits-post-processor.js';
import { failure, type RequestFailure } from '../../callbacks/request-failure.js';
import type { PostProcessors } from '../decoding/post-processors.js';
import type { LlmRequest } from '../request/llm-request.js';
import type { GeneratedSequence } from '../sequences/generated-sequence.js';

/** Rows of a step's logits that belong to one request, one row for each of its sequences. */
export interface RequestRows {
  readonly request: LlmRequest;
  readonly firstRow: number;
  readonly sequences: readonly GeneratedSequence[];
}

/** Requests of a step whose draws do not count, with the reasons. */
export type RowFailures = Map<LlmRequest, RequestFailure>;

/** Stream for post-processors: on the CPU there is nothing to wait for. */
const STREAM: LogitsStream = Object.freeze({ synchronize() {} });

/**
 * Work of JavaScript on the logits between the forward of a step and its sampling: runs the post-processors that its
 * requests name. Each gets its own rows, in place.
 */
export class LogitsStage {
  readonly #processors: PostProcessors;
  readonly #timeLimitMs: number;
  readonly #clock: () => number;

  constructor(processors: PostProcessors, timeLimitMs: number, clock: () => number) {
    this.#processors = processors;
    this.#timeLimitMs = timeLimitMs;
    this.#clock = clock;
  }

  /** Changes `logits` [rows x vocabSize] in place; requests whose post-processor failed are added to `failures`. */
  run(users: readonly RequestRows[], logits: Float32Array, vocabSize: number, failures: RowFailures): void {
    const batched: RequestRows[] = [];
    for (const rows of users) {
      const { postProcessor } = rows.request.spec;
      if (postProcessor === BATCHED_POST_PROCESSOR) batched.push(rows);
      else if (postProcessor !== null) {
        const why = this.#runOne(postProcessor, rows, viewOf(rows, logits, vocabSize));
        if (why !== null) failures.set(rows.request, failure('internal', why));
      }
    }
    if (batched.length === 0) return;
    const why = this.#runBatched(
      batched,
      batched.map((rows) => viewOf(rows, logits, vocabSize)),
    );
    if (why === null) return;
    for (const { request } of batched) failures.set(request, failure('internal', why));
  }

  #runOne(name: string, rows: RequestRows, view: Float32Array): string | null {
    const { requestId, clientId } = rows.request.spec;
    return this.#guard(name, () => {
      const result = this.#processors.get(name)!(requestId, view, tokensPerBeam(rows), STREAM, clientId);
      replace(view, result);
    });
  }

  #runBatched(batched: readonly RequestRows[], views: readonly Float32Array[]): string | null {
    return this.#guard(BATCHED_POST_PROCESSOR, () => {
      const results = this.#processors.batched!(
        batched.map(({ request }) => request.requestId),
        views,
        batched.map(tokensPerBeam),
        STREAM,
        batched.map(({ request }) => request.spec.clientId),
      );
      if (results === undefined) return;
      checkNoPromise(results);
      if (!Array.isArray(results) || results.length !== views.length) {
        throw new Error(`it returned ${kindOf(results)}; a list of ${views.length} arrays is expected`);
      }
      for (const [i, view] of views.entries()) replace(view, results[i] ?? undefined);
    });
  }

  /**
   * Runs a post-processor; returns the reason if it failed, else null. One that never returns is left to the watchdog.
   */
  #guard(name: string, call: () => void): string | null {
    const startMs = this.#clock();
    try {
      call();
    } catch (error) {
      return `The logits post-processor ${name} failed: ${asSentence(messageOf(error))}`;
    }
    const tookMs = this.#clock() - startMs;
    if (tookMs <= this.#timeLimitMs) return null;
    return `The logits post-processor ${name} took ${Math.round(tookMs)} ms; its time limit is ${this.#timeLimitMs} ms.`;
  }
}

function viewOf({ firstRow, sequences }: RequestRows, logits: Float32Array, vocabSize: number): Float32Array {
  return logits.subarray(firstRow * vocabSize, (firstRow + sequences.length) * vocabSize);
}

function tokensPerBeam({ request, sequences }: RequestRows): Int32Array[] {
  return sequences.map(({ tokens }) => tokens.slice(0, request.numTokens));
}

/** Copies a post-processor's result into the view, unless it has written there itself. */
function replace(view: Float32Array, result: unknown): void {
  if (result === undefined || result === view) return;
  checkNoPromise(result);
  if (!(result instanceof Float32Array) || result.length !== view.length) {
    throw new Error(`it returned ${kindOf(result)}; a Float32Array of ${view.length} values is expected`);
  }
  view.set(result);
}

/**
 * Refuses a promise: sampling does not wait, its result would come too late, and its rejection would belong to no step.
 */
function checkNoPromise(result: unknown): void {
  const pending = promiseOf(result);
  if (pending === null) return;
  pending.catch(() => {});
  throw new Error('it returned a promise; a post-processor is synchronous');
}

function kindOf(value: unknown): string {
  if (typeof value !== 'object' || value === null) return String(value);
  const length = (value as { length?: unknown }).length;
  return `${value.constructor?.name ?? 'an object'}${length === undefined ? '' : ` of ${length} values`}`;
}
