import type * as Api from '@opentelemetry/api';
import type * as Exporter from '@opentelemetry/exporter-trace-otlp-http';
import type * as Sdk from '@opentelemetry/sdk-trace-base';
import type { TraceAttributes, TraceSpan } from '../../../../callbacks/infer/trace-span.js';
import type { LoadPackage } from './packages.js';

/** What came with a request: headers of W3C Trace Context, or the same of another protocol. */
export interface TraceContext {
  traceparent: string | undefined;
  tracestate: string | undefined;
}

/** The client records a trace, or has decided not to; none: the client has not decided. */
export type ParentDecision = 'recorded' | 'dropped' | 'none';

/** Makes spans and sends them away. */
export interface SpanSource {
  decisionOf(context: TraceContext): ParentDecision;
  /** The first span here of a request, below the client's. */
  begin(context: TraceContext, name: string, startMs: number, attributes: TraceAttributes): TraceSpan;
  /** Sends what was not sent yet; rejects where that fails. */
  close(): Promise<void>;
}

export interface OpenTelemetryOptions {
  /** Where traces go, by OTLP over HTTP; null: where the variables of OpenTelemetry say. */
  url: string | null;
  version: string;
  /** Called for spans that could not be sent. */
  onError: (error: Error) => void;
}

/** Characters of a value, events and links of a span: what is more is left out. */
const LIMITS = { attributeValueLengthLimit: 4096, eventCountLimit: 64, linkCountLimit: 128 };

/** Opens OpenTelemetry's SDK. Its own variables (OTEL_BSP_..., OTEL_RESOURCE_ATTRIBUTES, OTEL_EXPORTER_OTLP_HEADERS) hold. */
export function openTelemetry(load: LoadPackage, options: OpenTelemetryOptions): SpanSource {
  const api = load('@opentelemetry/api') as typeof Api;
  const sdk = load('@opentelemetry/sdk-trace-base') as typeof Sdk;
  const { OTLPTraceExporter } = load('@opentelemetry/exporter-trace-otlp-http') as typeof Exporter;
  const core = load('@opentelemetry/core') as typeof import('@opentelemetry/core');
  const resources = load('@opentelemetry/resources') as typeof import('@opentelemetry/resources');
  const { url, version, onError } = options;
  core.setGlobalErrorHandler((error) => onError(error instanceof Error ? error : new Error(String(error))));
  const own = resources.resourceFromAttributes({ 'service.name': 'skein', 'service.version': version });
  const named = resources.detectResources({ detectors: [resources.envDetector] });
  const provider = new sdk.BasicTracerProvider({
    resource: own.merge(named),
    // What is recorded is decided before any span is made.
    sampler: new sdk.AlwaysOnSampler(),
    spanLimits: LIMITS,
    spanProcessors: [new sdk.BatchSpanProcessor(new OTLPTraceExporter(url === null ? {} : { url }))],
  });
  const tracer = provider.getTracer('skein', version);
  const propagator = new core.W3CTraceContextPropagator();
  const parentOf = ({ traceparent, tracestate }: TraceContext) =>
    traceparent === undefined
      ? api.ROOT_CONTEXT
      : propagator.extract(api.ROOT_CONTEXT, { traceparent, tracestate }, api.defaultTextMapGetter);
  return {
    decisionOf(context) {
      const parent = api.trace.getSpanContext(parentOf(context));
      if (parent === undefined) return 'none';
      return (parent.traceFlags & api.TraceFlags.SAMPLED) !== 0 ? 'recorded' : 'dropped';
    },
    begin(context, name, startMs, attributes) {
      const clock = wallClock(core);
      const how = { kind: api.SpanKind.SERVER, startTime: clock(startMs), attributes: mutable(attributes) };
      return new RecordedSpan({ api, tracer, clock }, tracer.startSpan(name, how, parentOf(context)));
    },
    close: () => provider.shutdown(),
  };
}

/** What the spans of one trace share. */
interface SpanParts {
  api: typeof Api;
  tracer: Api.Tracer;
  clock: WallClock;
}

/** From performance.now's clock to seconds and nanoseconds since 1970. */
type WallClock = (ms: number) => Api.HrTime;

/**
 * One clock for all spans of a trace. The library would take another for each span, by a time in whole milliseconds, so that spans could
 * begin before their parents.
 */
function wallClock(core: typeof import('@opentelemetry/core')): WallClock {
  const offsetMs = Date.now() - performance.now();
  return (ms) => core.millisToHrTime(offsetMs + ms);
}

class RecordedSpan implements TraceSpan {
  readonly #parts: SpanParts;
  readonly #span: Api.Span;

  constructor(parts: SpanParts, span: Api.Span) {
    this.#parts = parts;
    this.#span = span;
  }

  get traceparent(): string {
    const { traceId, spanId } = this.#span.spanContext();
    return `00-${traceId}-${spanId}-01`;
  }

  get tracestate(): string {
    return this.#span.spanContext().traceState?.serialize() ?? '';
  }

  child(
    name: string,
    startMs: number,
    attributes: TraceAttributes = {},
    links: readonly TraceSpan[] = [],
    kind: 'internal' | 'client' = 'internal',
  ): TraceSpan {
    const { api, tracer, clock } = this.#parts;
    const linked = links.slice(0, LIMITS.linkCountLimit).filter((link) => link instanceof RecordedSpan);
    const how = {
      kind: kind === 'client' ? api.SpanKind.CLIENT : api.SpanKind.INTERNAL,
      startTime: clock(startMs),
      attributes: mutable(attributes),
      links: linked.map((link) => ({ context: link.#span.spanContext() })),
    };
    const parent = api.trace.setSpan(api.ROOT_CONTEXT, this.#span);
    return new RecordedSpan(this.#parts, tracer.startSpan(name, how, parent));
  }

  set(attributes: TraceAttributes): void {
    this.#span.setAttributes(mutable(attributes));
  }

  event(name: string, atMs: number, attributes: TraceAttributes = {}): void {
    this.#span.addEvent(name, mutable(attributes), this.#parts.clock(atMs));
  }

  fail(message: string): void {
    this.#span.setStatus({ code: this.#parts.api.SpanStatusCode.ERROR, message });
  }

  end(endMs = performance.now()): void {
    this.#span.end(this.#parts.clock(endMs));
  }
}

/** The library's type of lists is one that may be changed. */
const mutable = (attributes: TraceAttributes) => attributes as Api.Attributes;
