import type { TraceAttributes, TraceSpan } from '../../../callbacks/infer/trace-span.js';
import type { TokenTiming } from '../../../callbacks/token-request.js';
import { phasesOf } from './text-phases.js';

/** A request for text, as its trace records it: numbers, and nothing of its content. */
export interface TracedText {
  model: string;
  requestId: string;
  promptTokens: number;
  maxTokens: number;
  temperature?: number | undefined;
  topP?: number | undefined;
  /** Answers that are asked for to its prompt. */
  choices: number;
  /** Number of ranks that run the model; absent: one process alone does. */
  ranks?: number | undefined;
}

/** Choices of one request that have spans; the others are as these. */
const MAX_CHOICES = 16;

/** Of requests that are being traced, how many choices have spans. */
const numChoices = new WeakMap<TraceSpan, number>();

/**
 * The trace of one answer of a model that generates text, with its parts when it has ended:
 *
 *   llm_request  |------- queue -------|--- context phase ---|------ generation phase ------|
 *                                                            ^ first_token  ^ tokens 2, 4, 8, ...
 *
 * Names of attributes are those of OpenTelemetry's conventions for generative models and of vLLM, whose dashboards read them.
 */
export class TextTrace {
  readonly #span: TraceSpan;
  readonly #startMs: number;
  #firstMs: number | null = null;
  #lastMs = 0;
  #tokens = 0;
  #nextTold = 2;
  #isOver = false;

  private constructor(span: TraceSpan, startMs: number) {
    this.#span = span;
    this.#startMs = startMs;
  }

  /** null: its request is not traced, or has spans enough. @param parent the span of its request; undefined: it is not traced */
  static begin(parent: TraceSpan | undefined, about: TracedText): TextTrace | null {
    if (parent === undefined) return null;
    const count = numChoices.get(parent) ?? 0;
    if (count >= MAX_CHOICES) return null;
    numChoices.set(parent, count + 1);
    const startMs = performance.now();
    return new TextTrace(parent.child('llm_request', startMs, asked(about)), startMs);
  }

  onCachedTokens(count: number): void {
    this.#span.set({ 'skein.usage.cached_tokens': count });
  }

  onTokens(count: number): void {
    const nowMs = performance.now();
    this.#lastMs = nowMs;
    this.#tokens += count;
    if (this.#firstMs === null) {
      this.#firstMs = nowMs;
      this.#span.event('first_token', nowMs);
    }
    // As often as the number has doubled: a long answer has some ten of these.
    if (this.#tokens < this.#nextTold) return;
    this.#span.event('tokens', nowMs, { 'gen_ai.usage.output_tokens': this.#tokens });
    while (this.#nextTold <= this.#tokens) this.#nextTold *= 2;
  }

  onForgotten(count: number): void {
    this.#tokens += count;
  }

  /** @param reason a finish reason, or 'abort' or 'error' */
  onEnd(reason: string, timing?: TokenTiming): void {
    if (this.#isOver) return;
    this.#isOver = true;
    const endMs = performance.now();
    this.#span.set({
      'gen_ai.usage.output_tokens': this.#tokens,
      'gen_ai.usage.completion_tokens': this.#tokens,
      'gen_ai.response.finish_reasons': [reason],
      'gen_ai.latency.e2e': (endMs - this.#startMs) / 1000,
    });
    this.#setPhases(timing, endMs - this.#startMs);
    if (reason === 'error' || reason === 'abort') this.#span.fail(`the request ended by ${reason}`);
    this.#span.end(endMs);
  }

  #setPhases(timing: TokenTiming | undefined, ended: number): void {
    const { numIterations, numPauses } = timing ?? {};
    const seen = (ms: number | null) => (ms === null || this.#firstMs === null ? null : ms - this.#startMs);
    const {
      scheduled,
      firstToken: first,
      lastToken: last,
    } = phasesOf(timing, {
      firstToken: seen(this.#firstMs),
      lastToken: seen(this.#lastMs),
      ended,
    });
    if (numIterations !== undefined) this.#span.set({ 'skein.iterations': numIterations });
    if (numPauses !== undefined && numPauses > 0) this.#span.set({ 'skein.pauses': numPauses });
    if (scheduled !== null) this.#phase('queue', 'time_in_queue', 0, scheduled);
    if (first === null || last === null) return;
    this.#span.set({ 'gen_ai.latency.time_to_first_token': first / 1000 });
    if (scheduled !== null) {
      this.#phase('context phase', 'time_in_model_prefill', scheduled, first);
      this.#span.set({ 'gen_ai.latency.time_in_model_inference': (last - scheduled) / 1000 });
    }
    this.#phase('generation phase', 'time_in_model_decode', first, last);
  }

  #phase(name: string, latency: string, beginMs: number, endMs: number): void {
    this.#span.set({ [`gen_ai.latency.${latency}`]: (endMs - beginMs) / 1000 });
    this.#span.child(name, this.#startMs + beginMs).end(this.#startMs + endMs);
  }
}

function asked({
  model,
  requestId,
  promptTokens,
  maxTokens,
  temperature,
  topP,
  choices,
  ranks,
}: TracedText): TraceAttributes {
  return {
    'gen_ai.operation.name': 'text_completion',
    'gen_ai.request.id': requestId,
    'gen_ai.request.model': model,
    'gen_ai.response.model': model,
    'gen_ai.request.max_tokens': maxTokens,
    'gen_ai.request.n': choices,
    'gen_ai.usage.num_sequences': choices,
    'gen_ai.usage.prompt_tokens': promptTokens,
    'gen_ai.usage.input_tokens': promptTokens,
    ...(temperature === undefined ? {} : { 'gen_ai.request.temperature': temperature }),
    ...(topP === undefined ? {} : { 'gen_ai.request.top_p': topP }),
    ...(ranks === undefined ? {} : { 'skein.ranks': ranks }),
  };
}
