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

/** Why the draws of some requests of a step do not count. */
export type RowFailures = Map<LlmRequest, RequestFailure>;

/** On the CPU there is nothing to wait for. */
const STREAM: LogitsStream = Object.freeze({ synchronize() {} });

/**
 * What JavaScript does with the logits between the forward of a step and its sampling: the post-processors that requests
 * of it name. Each sees its own rows, in place.
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

  /** `logits` [rows x vocabSize] are changed in place; whose post-processor failed is put into `failures`. */
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

  /** Why the call failed, or null. One that never returns is the watchdog's. */
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

/** Takes what a post-processor returned, where it did not write to the view. */
function replace(view: Float32Array, result: unknown): void {
  if (result === undefined || result === view) return;
  checkNoPromise(result);
  if (!(result instanceof Float32Array) || result.length !== view.length) {
    throw new Error(`it returned ${kindOf(result)}; a Float32Array of ${view.length} values is expected`);
  }
  view.set(result);
}

/** Sampling waits for nobody: what a promise brings would come too late, and what it is rejected with is of no step. */
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
