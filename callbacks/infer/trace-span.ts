export type TraceAttributes = Readonly<Record<string, string | number | boolean | readonly string[]>>;

/**
 * A part of a request's way that is recorded, for traces. Requests that are not traced have none, so that they cost nothing. Times are on
 * performance.now's clock.
 */
export interface TraceSpan {
  /** Its id and that of its trace, as the header `traceparent` of W3C Trace Context has them. */
  readonly traceparent: string;
  /** The header `tracestate`; '': there is none. */
  readonly tracestate: string;
  /** A part of it. @param links spans of other ways that meet here @param kind 'client': what is asked of another process, whose spans are below it */
  child(
    name: string,
    startMs: number,
    attributes?: TraceAttributes,
    links?: readonly TraceSpan[],
    kind?: 'internal' | 'client',
  ): TraceSpan;
  set(attributes: TraceAttributes): void;
  /** Something that happened meanwhile; some dozens of a span are kept. */
  event(name: string, atMs: number, attributes?: TraceAttributes): void;
  /** It did not end well. */
  fail(message: string): void;
  /** @param endMs default: now */
  end(endMs?: number): void;
}
