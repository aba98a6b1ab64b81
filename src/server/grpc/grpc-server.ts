import type { IncomingHttpHeaders, ServerHttp2Stream } from 'node:http2';
import type { ApiKeys, Caller } from '../api-keys.js';
import { ANYBODY } from '../api-keys.js';
import { callerOf } from '../auth.js';
import type { MemoryLedger } from '../held-memory.js';
import { type AllowedHosts, hostCheck } from '../host-check.js';
import { REQUEST_BYTES, STREAM_BYTES } from '../memory-estimates.js';
import type { Metrics } from '../metrics/metrics.js';
import { shuttingDown } from '../openai/errors.js';
import type { Platform } from '../platform.js';
import { requestIdOf } from '../request-ids.js';
import { RequestMemory } from '../request-memory.js';
import type { LogControl, ServerLog } from '../server-log.js';
import type { ServerState } from '../server-state.js';
import type { Tracing } from '../tracing/tracing.js';
import { healthMethods } from './methods/health-methods.js';
import { inferenceMethods } from './methods/inference-methods.js';
import type { Method } from './methods/method.js';
import { methodTypes } from './schema/message-types.js';
import { statusOf } from './status-of.js';
import { GrpcCall } from './wire/grpc-call.js';
import { GrpcListener } from './wire/grpc-listener.js';
import { headerText } from './wire/metadata.js';
import { GrpcError } from './wire/status.js';

export interface GrpcServerOptions {
  platform: Platform;
  state: ServerState;
  metrics: Metrics;
  log: ServerLog;
  /** Log with one line for each call. */
  accessLog: ServerLog;
  /** What is logged. */
  logControl: LogControl;
  /** Null: requests are not traced. */
  tracing: Tracing | null;
  apiKeys: ApiKeys;
  allowedHosts: AllowedHosts;
  ledger: MemoryLedger;
  /** Of this server. */
  version: string;
  maxBodyBytes: number;
  /** Most milliseconds of an answer; null: no limit. */
  requestTimeoutMs: number | null;
  /** Milliseconds that a client may take over a part of a message; undefined: any number. */
  stallLimitMs: number | undefined;
  host: string;
  /** Port to listen on; 0 takes a free one. */
  port: number;
  tls?: { cert: Buffer; key: Buffer } | undefined;
  maxConnections: number;
  /** Calls that one connection may have at once. */
  maxStreams: number;
}

/**
 * The Open Inference Protocol over gRPC, and gRPC's own service of health, on a port of their own. What is checked of a call is what is checked
 * of a request over HTTP, by the same functions.
 *
 *   stream of HTTP/2 -> GrpcCall -> host, key, drain, memory -> Method -> status -> metrics, log
 */
export class GrpcServer {
  readonly #options: GrpcServerOptions;
  readonly #methods: ReadonlyMap<string, Method>;
  readonly #checkHost: (host: string | undefined) => void;
  #listener: GrpcListener | null = null;
  /** Calls that are not over, those of streams too. */
  readonly #calls = new Set<GrpcCall>();
  /** Calls of one message, and requests of streams. */
  #working = 0;
  #onIdle: (() => void) | null = null;

  private constructor(options: GrpcServerOptions) {
    const { state, maxBodyBytes: maxBytes } = options;
    this.#options = options;
    this.#checkHost = hostCheck(options.allowedHosts);
    const types = new Map(methodTypes().map((one) => [one.name, one]));
    const typesOf = (name: string) => types.get(name)!;
    const methods = [
      ...inferenceMethods(typesOf, { ...options, maxBytes, timeLimitMs: options.requestTimeoutMs }),
      ...healthMethods(typesOf, state),
    ];
    this.#methods = new Map(methods.map((method) => [method.path, method]));
  }

  /** Starts to listen. @throws ListenError where the address cannot be listened on */
  static async listen(options: GrpcServerOptions): Promise<GrpcServer> {
    const server = new GrpcServer(options);
    server.#listener = await GrpcListener.listen({
      ...options,
      onStream: (stream, headers, isSurplus) => void server.#take(stream, headers, isSurplus),
    });
    return server;
  }

  get port(): number {
    return this.#listener!.port;
  }

  get url(): string {
    return this.#listener!.url;
  }

  /**
   * Lets what is under way end, for at most `limitMs`; the state says that the server is draining. The port stays open meanwhile, so that
   * clients hear why they are refused. @returns true where all of it ended in time
   */
  async drain(limitMs: number): Promise<boolean> {
    if (this.#working > 0) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, limitMs);
        this.#onIdle = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
    return this.#working === 0;
  }

  /** Ends the calls that are left, tells their clients so, and closes all connections, at the latest after `limitMs`. */
  async close(limitMs = 1000): Promise<void> {
    for (const call of this.#calls) {
      call.end({ name: 'UNAVAILABLE', message: 'The server is shutting down, and this call was cut off.' });
    }
    await this.#listener!.close(limitMs);
  }

  async #take(stream: ServerHttp2Stream, headers: IncomingHttpHeaders, isSurplus: boolean): Promise<void> {
    if (!isCall(headers)) {
      stream.on('error', () => {});
      stream.resume();
      stream.respond({ ':status': 415 }, { endStream: true });
      setImmediate(() => stream.close());
      return;
    }
    const startMs = performance.now();
    // A connection that is closed has no address any more.
    const remote = stream.session?.socket.remoteAddress;
    const { metrics, maxBodyBytes, stallLimitMs } = this.#options;
    let caller = ANYBODY;
    const openMemory = () => this.#openMemory(caller);
    const requestId = requestIdOf(headers['x-request-id']);
    const call = new GrpcCall(stream, headers, requestId, {
      maxMessageBytes: maxBodyBytes,
      stallLimitMs,
      openMemory,
      onStall: () => metrics.readerStalled(),
    });
    this.#calls.add(call);
    const method = this.#methods.get(call.path);
    const endWork = method?.isStream === true ? () => {} : this.#beginWork();
    let memory: RequestMemory | null = null;
    let isDone = false;
    call.onClose(() => {
      this.#calls.delete(call);
      endWork();
      if (isDone) memory?.release();
      this.#observe(call, method, { startMs, key: caller.name, remote });
    });
    try {
      if (isSurplus) throw this.#tooManyConnections();
      call.startDeadline();
      if (method === undefined) throw noMethod(call.path);
      caller = this.#letIn(call, method);
      memory = openMemory();
      // A stream has a window of what its client may send while nobody reads.
      memory.holdBody(method.isStream ? REQUEST_BYTES + STREAM_BYTES : REQUEST_BYTES);
      await method.answer({
        call,
        caller,
        openMemory,
        beginWork: () => this.#beginWork(),
        noteFailure: (error) => this.#noteFailure(error, call),
      });
    } catch (error) {
      if (!call.isOver) {
        this.#noteFailure(error, call);
        call.end(statusOf(error));
      }
    }
    // A client that leaves ends its call at once; the work begun for it ends a moment later.
    isDone = true;
    if (call.isClosed) memory?.release();
  }

  /** Who calls. @throws ApiError where the call is refused */
  #letIn({ headers }: GrpcCall, method: Method): Caller {
    const { apiKeys, state } = this.#options;
    this.#checkHost(headerText(headers[':authority'] ?? headers.host));
    const caller = method.isOpen
      ? ANYBODY
      : callerOf(apiKeys, headerText(headers.authorization), headerText(headers['x-api-key']));
    if (method.isWork && state.isDraining) throw shuttingDown(state.drainEndsInMs);
    return caller;
  }

  #openMemory({ name }: Caller): RequestMemory {
    const { ledger } = this.#options;
    return new RequestMemory(ledger.open('request', name), ledger.limit);
  }

  #beginWork(): () => void {
    this.#working++;
    let isOver = false;
    return () => {
      if (isOver) return;
      isOver = true;
      this.#working--;
      if (this.#working === 0) this.#onIdle?.();
    };
  }

  #noteFailure(error: unknown, { requestId, path }: GrpcCall): void {
    const { metrics, log } = this.#options;
    const { name } = statusOf(error);
    metrics.refused(`grpc_${name}`);
    // What a client sends that is no message is not the server's failure.
    if (name === 'INTERNAL' && !(error instanceof GrpcError))
      log.error({ err: error, requestId, path }, 'request failed');
  }

  #tooManyConnections(): GrpcError {
    const { maxConnections } = this.#options;
    return new GrpcError(
      'UNAVAILABLE',
      `This server has its ${maxConnections} connections (--max-connections); try again later.`,
    );
  }

  #observe(call: GrpcCall, method: Method | undefined, { startMs, key, remote = '' }: Observed): void {
    const { metrics, accessLog } = this.#options;
    const durationMs = performance.now() - startMs;
    const code = call.status?.name ?? 'CANCELLED';
    metrics.grpcCall({ method: method?.path.split('/').at(-1) ?? 'unknown', code, durationMs });
    const fields = {
      requestId: call.requestId,
      key,
      remote,
      method: 'gRPC',
      path: call.path.slice(0, LONGEST_PATH),
      status: code,
      durationMs: Math.round(durationMs * 1000) / 1000,
      // false where the client left before its status.
      isWhole: call.status !== null,
    };
    if (method?.isProbe === true) accessLog.debug(fields, 'request');
    else accessLog.info(fields, 'request');
  }
}

/** Characters of a path in the log. */
const LONGEST_PATH = 200;

interface Observed {
  startMs: number;
  key: string;
  remote: string | undefined;
}

/** A request of HTTP/2 that is a call of gRPC. Source: gRPC over HTTP/2, "Requests". */
function isCall(headers: IncomingHttpHeaders): boolean {
  const type = headers['content-type'] ?? '';
  return headers[':method'] === 'POST' && /^application\/grpc(?:$|[+;])/.test(type);
}

function noMethod(path: string): GrpcError {
  return new GrpcError('UNIMPLEMENTED', `there is no method ${path.slice(0, LONGEST_PATH)} on this server`);
}
