import type { ObservedRequest, RequestObserver } from '../../serving/request-observer.js';
import type { GrpcExchange } from './families/grpc-metrics.js';
import type { SocketMessage } from './families/socket-metrics.js';
import { UNCOUNTED } from './model-metrics.js';

export interface HttpExchange {
  handler: string;
  method: string;
  status: number;
  durationMs: number;
}

/** What a server reports about its requests for metrics. */
export interface Metrics {
  /** False: nothing is counted, and there is no GET /metrics. */
  readonly isOn: boolean;
  readonly contentType: string;
  /** @param ofKeys also what single API keys took, which is for admins */
  text(ofKeys?: boolean): Promise<string>;
  /** Follows a request that was just accepted; one of a model removed meanwhile is not counted. */
  observe(request: ObservedRequest): RequestObserver;
  httpRequest(exchange: HttpExchange): void;
  grpcCall(exchange: GrpcExchange): void;
  /** A WebSocket was opened. */
  socketOpened(): void;
  /** A message of one was received, or sent. */
  socketMessage(direction: SocketMessage): void;
  /** One was closed. @param reason one of a few */
  socketClosed(reason: string): void;
  /** Counts a client that was cut off because it did not read its answer. */
  readerStalled(): void;
  /** Counts a refusal. @param code code of the error; null for one that its parameter describes. */
  refused(code: string | null): void;
}

/** Of a server that counts nothing (--no-metrics). */
export const NO_METRICS: Metrics = {
  isOn: false,
  contentType: 'text/plain',
  text: async () => '',
  observe: () => UNCOUNTED,
  httpRequest: () => {},
  grpcCall: () => {},
  socketOpened: () => {},
  socketMessage: () => {},
  socketClosed: () => {},
  readerStalled: () => {},
  refused: () => {},
};
