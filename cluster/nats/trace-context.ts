import type { TraceSpan } from '../../callbacks/infer/trace-span.js';

/** What of a trace goes with a request: the headers of W3C Trace Context. */
export interface ItemTrace {
  traceparent?: string;
  /** Absent: there is none. */
  tracestate?: string;
}

/** Characters of a tracestate that is handed on; one that is longer is left out. Source: W3C Trace Context, 3.3.1.5. */
const MAX_TRACESTATE = 512;
const TRACEPARENT = /^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/;
const PRINTABLE = /^[\x20-\x7e]*$/;

/** The context of a span, as a worker gets it. */
export function traceOf({ traceparent, tracestate }: TraceSpan): ItemTrace {
  return isTracestate(tracestate) ? { traceparent, tracestate } : { traceparent };
}

/**
 * The context of a message, as far as it is one: its sender may be broken, and a request is answered without its trace as well as with it.
 * Null: it is not traced.
 */
export function readTrace({
  traceparent,
  tracestate,
}: { readonly [Name in keyof ItemTrace]?: unknown }): ItemTrace | null {
  if (typeof traceparent !== 'string' || !TRACEPARENT.test(traceparent)) return null;
  return isTracestate(tracestate) ? { traceparent, tracestate } : { traceparent };
}

function isTracestate(value: unknown): value is string {
  return typeof value === 'string' && value !== '' && value.length <= MAX_TRACESTATE && PRINTABLE.test(value);
}
