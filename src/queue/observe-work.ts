import type { TraceAttributes, TraceSpan } from '../../callbacks/infer/trace-span.js';
import type { TokenPiece, TokenRequest, TokenTiming } from '../../callbacks/token-request.js';
import type { WorkItem } from '../../cluster/nats/messages.js';
import { namesOfItem } from '../../cluster/nats/request-names.js';
import { readTrace } from '../../cluster/nats/trace-context.js';
import type { ObserveWork, WorkEnd, WorkObserver } from '../../cluster/nats/work-observer.js';
import type { Log } from '../server/logs/log.js';
import type { Tracing } from '../server/tracing/tracing.js';
import type { ServerLog } from '../server/web/server-log.js';
import { phasesOf } from '../serving/texts/text-phases.js';

/** Follows a worker's requests for its log, and those that are traced for their traces. @param tracing null: nothing is traced */
export function observeWork(of: TracedWorker, log: Log, tracing: Tracing | null): ObserveWork {
  return (item, request) => {
    const observers: WorkObserver[] = [];
    if (log.levels.log_info) observers.push(new WorkLine(log, of.worker, item, request));
    const trace = tracing === null ? null : WorkTrace.begin(tracing, of, item, request);
    if (trace !== null) observers.push(trace);
    return observers.length < 2 ? (observers[0] ?? null) : all(observers);
  };
}

function all(observers: readonly WorkObserver[]): WorkObserver {
  return {
    onBlocks: () => {
      for (const one of observers) one.onBlocks();
    },
    onSubmit: () => {
      for (const one of observers) one.onSubmit();
    },
    onPiece: (piece) => {
      for (const one of observers) one.onPiece(piece);
    },
    onEnd: (end, reason) => {
      for (const one of observers) one.onEnd(end, reason);
    },
  };
}

/** The worker's line in the log for one attempt of a request, when it is over. */
class WorkLine implements WorkObserver {
  readonly #log: Pick<ServerLog, 'info'>;
  readonly #item: WorkItem;
  readonly #worker: string;
  readonly #promptTokens: number;
  readonly #startMs = performance.now();
  #firstMs: number | null = null;
  #cachedTokens = 0;
  #completionTokens = 0;

  constructor(log: Pick<ServerLog, 'info'>, worker: string, item: WorkItem, { promptTokens }: TokenRequest) {
    this.#log = log;
    this.#worker = worker;
    this.#item = item;
    this.#promptTokens = promptTokens.length;
  }

  onBlocks(): void {}
  onSubmit(): void {}

  onPiece({ tokens, cachedTokens }: TokenPiece): void {
    this.#cachedTokens = Math.max(this.#cachedTokens, cachedTokens ?? 0);
    if (tokens.length > 0) this.#firstMs ??= performance.now();
    this.#completionTokens += tokens.length;
  }

  onEnd(end: WorkEnd, reason?: string): void {
    const { gateway, attempt } = this.#item;
    const since = (ms: number) => Math.round(1000 * (ms - this.#startMs)) / 1000;
    this.#log.info(
      {
        ...namesOfItem(this.#item),
        ...{ worker: this.#worker, gateway, attempt, end },
        ...(reason === undefined ? {} : { reason }),
        promptTokens: this.#promptTokens,
        cachedTokens: this.#cachedTokens,
        completionTokens: this.#completionTokens,
        ...(this.#firstMs === null ? {} : { firstTokenMs: since(this.#firstMs) }),
        durationMs: since(performance.now()),
      },
      'request',
    );
  }
}

/** The worker, as its spans describe it. */
interface TracedWorker {
  worker: string;
  model: string;
  /** Number of ranks that run the model; absent: one process alone does. */
  ranks?: number | undefined;
}

/**
 * The spans of a worker for one attempt of a request, below the gateway's span of that attempt:
 *
 *   work  |- fetch blocks -|--- queue ---|--- context phase ---|------ generation phase ------|
 *
 * Their times are the engine's own. The ranks of a group compute each iteration together, for all requests at once, so that none of them
 * has times of its own for a request: the phases are those of the group.
 */
class WorkTrace implements WorkObserver {
  readonly #span: TraceSpan;
  readonly #startMs = performance.now();
  readonly #promptTokens: number;
  #submittedMs: number | null = null;
  #firstMs: number | null = null;
  #lastMs: number | null = null;
  #tokens = 0;
  #cachedTokens = 0;
  #timing: TokenTiming | undefined;

  private constructor(span: TraceSpan, promptTokens: number) {
    this.#span = span;
    this.#promptTokens = promptTokens;
  }

  /** null: its gateway does not trace the request. */
  static begin(tracing: Tracing, of: TracedWorker, item: WorkItem, request: TokenRequest): WorkTrace | null {
    const context = readTrace(item);
    if (context === null) return null;
    const { traceparent, tracestate } = context;
    const promptTokens = request.promptTokens.length + longestOf(request.knownOutputIds ?? []);
    const attributes = attributesOf(of, item, request);
    const startMs = performance.now();
    const span = tracing.begin({ name: 'work', startMs, traceparent, tracestate, attributes });
    return span && new WorkTrace(span, promptTokens);
  }

  onBlocks(): void {
    this.#span.child('fetch blocks', this.#startMs).end();
  }

  onSubmit(): void {
    this.#submittedMs = performance.now();
  }

  onPiece({ tokens, cachedTokens, timing }: TokenPiece): void {
    this.#cachedTokens = Math.max(this.#cachedTokens, cachedTokens ?? 0);
    // Sequences end one after another; the last one has the last token.
    this.#timing = timing ?? this.#timing;
    if (tokens.length === 0) return;
    const nowMs = performance.now();
    this.#firstMs ??= nowMs;
    this.#lastMs = nowMs;
    this.#tokens += tokens.length;
  }

  onEnd(end: WorkEnd, reason?: string): void {
    const nowMs = performance.now();
    this.#span.set({
      'skein.outcome': end,
      'gen_ai.usage.output_tokens': this.#tokens,
      'skein.usage.cached_tokens': this.#cachedTokens,
    });
    this.#tellPhases(nowMs);
    if (end === 'failed') this.#span.fail(reason ?? 'the attempt failed');
    this.#span.end(nowMs);
  }

  #tellPhases(endMs: number): void {
    const startMs = this.#submittedMs;
    if (startMs === null) return;
    const seen = (ms: number | null) => (ms === null ? null : ms - startMs);
    const { scheduled, firstToken, lastToken } = phasesOf(this.#timing, {
      firstToken: seen(this.#firstMs),
      lastToken: seen(this.#lastMs),
      ended: endMs - startMs,
    });
    const tell = (name: string, fromMs: number, toMs: number, attributes: TraceAttributes = {}) =>
      this.#span.child(name, startMs + fromMs, attributes).end(startMs + toMs);
    const { numIterations, numPauses = 0 } = this.#timing ?? {};
    if (numIterations !== undefined) this.#span.set({ 'skein.iterations': numIterations });
    if (numPauses > 0) this.#span.set({ 'skein.pauses': numPauses });
    // An attempt that did not come to its end has no times of the engine: until its first token it waited, or was computed.
    if (scheduled !== null) tell('queue', 0, scheduled);
    if (firstToken === null || lastToken === null) return;
    tell('context phase', scheduled ?? 0, firstToken, {
      'gen_ai.usage.input_tokens': this.#promptTokens,
      'skein.usage.cached_tokens': this.#cachedTokens,
    });
    tell('generation phase', firstToken, lastToken, { 'gen_ai.usage.output_tokens': this.#tokens });
  }
}

const longestOf = (lists: readonly ArrayLike<number>[]) =>
  lists.reduce((most, { length }) => Math.max(most, length), 0);

function attributesOf(
  { worker, model, ranks }: TracedWorker,
  item: WorkItem,
  { promptTokens, maxNewTokens, numSequences = 1 }: TokenRequest,
): TraceAttributes {
  const { request, requestId } = namesOfItem(item);
  const known = item.known.reduce((sum, count) => sum + count, 0);
  return {
    'skein.worker': worker,
    'skein.queue.request': request,
    'skein.attempt': item.attempt,
    ...(requestId === undefined ? {} : { 'skein.request_id': requestId }),
    ...(ranks === undefined ? {} : { 'skein.ranks': ranks }),
    ...(item.isPrefill ? { 'skein.is_prefill': true } : {}),
    ...(known === 0 ? {} : { 'skein.known_tokens': known }),
    'gen_ai.request.model': model,
    'gen_ai.request.max_tokens': maxNewTokens,
    'gen_ai.request.n': numSequences,
    'gen_ai.usage.input_tokens': promptTokens.length,
  };
}
