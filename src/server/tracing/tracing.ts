import type { TraceAttributes, TraceSpan } from '../../../callbacks/infer/trace-span.js';
import type { SpanSource, TraceContext } from './telemetry/open-telemetry.js';
import type { TraceDecisions } from './trace-settings.js';

/** A request that has come in, by whatever protocol. */
export interface IncomingRequest extends TraceContext {
  name: string;
  /** When it began, on performance.now's clock. */
  startMs: number;
  attributes: TraceAttributes;
  /** The model that it is for; '' where that is not known yet. */
  model?: string;
}

/** The traces of a server: which requests are traced, and where their spans come from. */
export class Tracing {
  readonly decisions: TraceDecisions;
  readonly #source: SpanSource;

  constructor(source: SpanSource, decisions: TraceDecisions) {
    this.#source = source;
    this.decisions = decisions;
  }

  /** The span of a request that is traced; null: it is not. The caller that begins it ends it. */
  begin({ name, startMs, attributes, model, ...context }: IncomingRequest): TraceSpan | null {
    if (!this.decisions.decide(this.#source.decisionOf(context), model)) return null;
    return this.#source.begin(context, name, startMs, attributes);
  }

  /** Sends what was not sent yet. Never rejects: a caller could not react to it. */
  async close(): Promise<void> {
    await this.#source.close().catch(() => {});
  }
}
