import { messageOf } from '../base/error-text.js';
import { promiseOf } from '../base/guarded-calls.js';
import { asSentence } from '../base/sentences.js';
import {
  BATCHED_POST_PROCESSOR,
  type LogitsPostProcessor,
  type LogitsPostProcessorBatched,
  type LogitsStream,
} from './logits-post-processor.js';

/** What a post-processor is given of one request. */
export interface PostProcessorRows {
  requestId: bigint;
  clientId: bigint | null;
  /** All tokens of each beam so far, the prompt first. */
  tokensPerBeam: readonly Int32Array[];
  /** Logits, [beams x vocabSize], changed in place. */
  view: Float32Array;
}

/** A call of one post-processor: for one request, or with the name `batched` for all that ask for that one. */
export interface PostProcessorCall {
  name: string;
  rows: readonly PostProcessorRows[];
}

/** The functions that calls name. */
export interface PostProcessorFunctions {
  get(name: string): LogitsPostProcessor | undefined;
  readonly batched: LogitsPostProcessorBatched | null;
}

/** Stream for post-processors: on the CPU there is nothing to wait for. */
const STREAM: LogitsStream = Object.freeze({ synchronize() {} });

/**
 * Makes a call; returns the reason if it failed or took longer than its limit, else null. A function that never returns
 * keeps its thread.
 */
export function runPostProcessor(
  functions: PostProcessorFunctions,
  { name, rows }: PostProcessorCall,
  timeLimitMs: number,
  clock: () => number,
): string | null {
  const startMs = clock();
  try {
    if (name === BATCHED_POST_PROCESSOR) callBatched(functions.batched!, rows);
    else for (const one of rows) callOne(functions.get(name)!, one);
  } catch (error) {
    return `The logits post-processor ${name} failed: ${asSentence(messageOf(error))}`;
  }
  const tookMs = clock() - startMs;
  if (tookMs <= timeLimitMs) return null;
  return `The logits post-processor ${name} took ${Math.round(tookMs)} ms; its time limit is ${timeLimitMs} ms.`;
}

function callOne(call: LogitsPostProcessor, { requestId, view, tokensPerBeam, clientId }: PostProcessorRows) {
  replace(view, call(requestId, view, tokensPerBeam, STREAM, clientId));
}

function callBatched(call: LogitsPostProcessorBatched, rows: readonly PostProcessorRows[]): void {
  const results = call(
    rows.map(({ requestId }) => requestId),
    rows.map(({ view }) => view),
    rows.map(({ tokensPerBeam }) => tokensPerBeam),
    STREAM,
    rows.map(({ clientId }) => clientId),
  );
  if (results === undefined) return;
  checkNoPromise(results);
  if (!Array.isArray(results) || results.length !== rows.length) {
    throw new Error(`it returned ${kindOf(results)}; a list of ${rows.length} arrays is expected`);
  }
  for (const [i, { view }] of rows.entries()) replace(view, results[i] ?? undefined);
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
