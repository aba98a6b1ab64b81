import type { TraceSpan } from '../../../callbacks/infer/trace-span.js';
import type { Tracing } from '../tracing/tracing.js';
import { type CallStatus, STATUS_CODES } from './wire/status.js';

/** A request for tensors by gRPC: a call, or one of the requests of a stream. */
export interface TracedCall {
  /** As it is called: /inference.GRPCInferenceService/ModelInfer */
  path: string;
  requestId: string;
  startMs: number;
  model: string;
  /** Those of W3C Trace Context. */
  traceparent: string | undefined;
  tracestate: string | undefined;
}

/** The span of a request that is traced; null: it is not. Source of the attributes' names: OpenTelemetry's semantic conventions for gRPC. */
export function beginGrpcSpan(
  tracing: Tracing,
  { path, requestId, startMs, model, traceparent, tracestate }: TracedCall,
): TraceSpan | null {
  const [service = '', method = ''] = path.slice(1).split('/');
  return tracing.begin({
    name: `${service}/${method}`,
    startMs,
    model,
    traceparent,
    tracestate,
    attributes: {
      'rpc.system': 'grpc',
      'rpc.service': service,
      'rpc.method': method,
      'skein.request_id': requestId,
    },
  });
}

/** Says how a request ended. */
export function noteGrpcStatus(span: TraceSpan, { name, message }: CallStatus): void {
  span.set({ 'rpc.grpc.status_code': STATUS_CODES[name] });
  if (name !== 'OK') span.fail(`${name}: ${message}`);
}
