import { Counter, Histogram, type Registry } from 'prom-client';
import { HTTP_BUCKETS } from './buckets.js';

export interface GrpcExchange {
  /** Name of the method, such as ModelInfer. */
  method: string;
  /** Name of the code of its status. */
  code: string;
  durationMs: number;
}

/** Metrics of calls of gRPC. */
export class GrpcMetrics {
  readonly #calls: Counter<'method' | 'code'>;
  readonly #duration: Histogram<'method'>;

  constructor(registry: Registry) {
    this.#calls = new Counter({
      name: 'skein:grpc_calls_total',
      help: 'Calls of gRPC by their method and the code of their status',
      labelNames: ['method', 'code'] as const,
      registers: [registry],
    });
    this.#duration = new Histogram({
      name: 'skein:grpc_call_duration_seconds',
      help: 'Calls of gRPC from their headers to their status; those of streams last as long as their clients like',
      labelNames: ['method'] as const,
      buckets: HTTP_BUCKETS,
      registers: [registry],
    });
  }

  count({ method, code, durationMs }: GrpcExchange): void {
    this.#calls.inc({ method, code });
    this.#duration.observe({ method }, durationMs / 1000);
  }
}
