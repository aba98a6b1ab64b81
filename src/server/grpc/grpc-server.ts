import type { IncomingHttpHeaders, ServerHttp2Session, ServerHttp2Stream } from 'node:http2';
import type { Platform } from '../inferring/platform.js';
import type { Metrics } from '../metrics/metrics.js';
import type { Certificate } from '../sockets/http-socket.js';
import type { Tracing } from '../tracing/tracing.js';
import type { ApiKeys, Caller } from '../web/access/api-keys.js';
import { ANYBODY } from '../web/access/api-keys.js';
import { callerOf } from '../web/access/auth.js';
import { type AllowedHosts, hostCheck } from '../web/access/host-check.js';
import { AccessTally, microseconds } from '../web/access-tally.js';
import { shuttingDown } from '../web/errors.js';
import type { MemoryLedger } from '../web/memory/held-memory.js';
import { REQUEST_BYTES, STREAM_BYTES } from '../web/memory/memory-estimates.js';
import { RequestMemory } from '../web/memory/request-memory.js';
import type { Quotas } from '../web/quotas/quotas.js';
import { requestIdOf } from '../web/request-ids.js';
import type { LogControl, ServerLog } from '../web/server-log.js';
import type { ServerState } from '../web/server-state.js';
import { healthMethods } from './methods/health-methods.js';
import { inferenceMethods } from './methods/inference-methods.js';
import type { Method } from './methods/method.js';
import { MAX_OPEN_CALLS, OpenCalls } from './open-calls.js';
import { methodTypes } from './schema/message-types.js';
import { statusOf } from './status-of.js';
import { GrpcCall, refuseStream } from './wire/grpc-call.js';
import { GrpcListener } from './wire/grpc-listener.js';
import { endSession } from './wire/known-sessions.js';
import { headerText } from './wire/metadata.js';
import { type CallStatus, GrpcError } from './wire/status.js';

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
  /** Limits of these keys; absent: nothing is counted. */
  quotas?: Quotas;
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
  tls?: Certificate | undefined;
  maxConnections: number;
  /** Calls that one connection may have at once; all together have twice as many. */
  maxStreams: number;
}

/**
 * The Open Inference Protocol over gRPC, and gRPC's own service of health, on a port of their own. What is checked of a call is what is checked
 * of a request over HTTP, by the same functions.
 *
 *   stream of HTTP/2 -> host, key, drain, places -> GrpcCall -> Method -> status -> metrics, log
 */
export class GrpcServer {
  readonly #options: GrpcServerOptions;
  readonly #methods: ReadonlyMap<string, Method>;
  readonly #checkHost: (host: string | undefined) => void;
  #listener: GrpcListener | null = null;
  /** Calls that are not over, those of streams too. */
  readonly #calls = new Set<GrpcCall>();
  /** Those of them that need no key. */
  readonly #open = new OpenCalls<ServerHttp2Session>();
  /** Calls that were refused, of connections without one that was let in. */
  readonly #refusals = new WeakMap<ServerHttp2Session, number>();
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

  /** See GrpcListener.certify. */
  certify(tls: Certificate): void {
    this.#listener!.certify(tls);
  }

  get port(): number {
    return this.#listener!.port;
  }

  get url(): string {
    return this.#listener!.url;
  }

  /**
   * Lets what is under way end, for at most `limitMs`; the state says that the server is draining. The port
   * stays open meanwhile, so that clients learn why they are refused. @returns true where all of it ended in
   * time
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

  /**
   * Ends the remaining calls, notifies their clients, and closes all connections, at the latest after
   * `limitMs`.
   */
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
    const session = stream.session as ServerHttp2Session | undefined;
    if (session === undefined || session.destroyed) return;
    const path = String(headers[':path'] ?? '');
    const method = this.#methods.get(path);
    if (method?.isOpen === true && this.#open.isFlood(session) && !this.#listener!.isKnown(session)) {
      stream.on('error', () => {});
      endSession(session);
      return;
    }
    const requestId = requestIdOf(headers['x-request-id']);
    // A connection that is closed has no address any more.
    const startMs = performance.now();
    const remote = session.socket.remoteAddress;
    const seen: Seen = { startMs, path, requestId, remote, tally: new AccessTally(startMs) };
    try {
      if (isSurplus) throw this.#tooManyConnections();
      if (method === undefined) throw noMethod(path);
      const caller = this.#letIn(headers, method);
      if (!method.isOpen) this.#listener!.know(session);
      await this.#answer(stream, headers, { method, caller, session, seen });
    } catch (error) {
      this.#refuse(stream, error, { session, method, seen });
    }
  }

  /** Answers a call that is let in. @throws GrpcError where its metadata cannot be read: nothing is held for it then */
  async #answer(
    stream: ServerHttp2Stream,
    headers: IncomingHttpHeaders,
    { method, caller, session, seen }: Entered,
  ): Promise<void> {
    const { metrics, maxBodyBytes, stallLimitMs } = this.#options;
    const openMemory = () => this.#openMemory(caller);
    const memory = openMemory();
    const call = new GrpcCall(stream, headers, seen.requestId, {
      maxMessageBytes: maxBodyBytes,
      stallLimitMs,
      openMemory,
      onStall: () => metrics.readerStalled(),
      // A stream has a window for what its client may send while the server is not reading.
      onFirst: () => memory.holdBody(method.isStream ? REQUEST_BYTES + STREAM_BYTES : REQUEST_BYTES),
    });
    this.#calls.add(call);
    const leavePlace = method.isOpen ? this.#open.add({ giveWay: () => giveWay(call) }, session) : () => {};
    const endWork = method.isStream ? () => {} : this.#beginWork();
    let isDone = false;
    call.onClose(() => {
      this.#calls.delete(call);
      leavePlace();
      endWork();
      if (isDone) memory.release();
      this.#observe(seen, method, call.status?.name ?? null, caller.name);
    });
    try {
      call.startDeadline();
      await method.answer({
        call,
        caller,
        tally: seen.tally,
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
    if (call.isClosed) memory.release();
  }

  /** Who calls. @throws ApiError, GrpcError where the call is refused */
  #letIn(headers: IncomingHttpHeaders, method: Method): Caller {
    const { apiKeys, state, maxStreams } = this.#options;
    this.#checkHost(headerText(headers[':authority'] ?? headers.host));
    if (method.isOpen) return ANYBODY;
    const caller = callerOf(apiKeys, headerText(headers.authorization), headerText(headers['x-api-key']));
    if (method.isWork && state.isDraining) throw shuttingDown(state.drainEndsInMs);
    const most = CONNECTIONS_OF_CALLS * maxStreams;
    if (this.#calls.size - this.#open.size < most) return caller;
    throw new GrpcError(
      'RESOURCE_EXHAUSTED',
      `This server has its ${most} calls (twice --max-grpc-streams); try again later.`,
    );
  }

  /** Refuses a call before anything is made for it. */
  #refuse(stream: ServerHttp2Stream, error: unknown, { session, method, seen }: Refused): void {
    const status = statusOf(error);
    this.#noteFailure(error, seen);
    refuseStream(stream, seen.requestId, status);
    this.#observe(seen, method, status.name, '');
    if (this.#listener!.isKnown(session)) return;
    const refusals = (this.#refusals.get(session) ?? 0) + 1;
    this.#refusals.set(session, refusals);
    if (refusals >= MAX_REFUSALS) endSession(session);
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

  #noteFailure(error: unknown, { requestId, path }: Pick<Seen, 'requestId' | 'path'>): void {
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

  /** @param code null: its client left before its status */
  #observe(seen: Seen, method: Method | undefined, code: CallStatus['name'] | null, key: string): void {
    const { metrics, accessLog } = this.#options;
    const { startMs, requestId, path, remote = '', tally } = seen;
    const durationMs = performance.now() - startMs;
    const status = code ?? 'CANCELLED';
    metrics.grpcCall({ method: method?.path.split('/').at(-1) ?? 'unknown', code: status, durationMs });
    const fields = {
      requestId,
      key,
      remote,
      method: 'gRPC',
      path: path.slice(0, LONGEST_PATH),
      status,
      ...tally.fields(),
      durationMs: microseconds(durationMs),
      isWhole: code !== null,
    };
    if (method?.isProbe === true) accessLog.debug(fields, 'request');
    else accessLog.info(fields, 'request');
  }
}

/** Characters of a path in the log. */
const LONGEST_PATH = 200;

/** The calls admitted are at most those of this many connections. */
const CONNECTIONS_OF_CALLS = 2;
/** Calls of a connection that may be refused before one is let in. */
const MAX_REFUSALS = 100;

/** What is reported of a call when it is over. */
interface Seen {
  startMs: number;
  path: string;
  requestId: string;
  remote: string | undefined;
  tally: AccessTally;
}

/** A call that is let in. */
interface Entered {
  method: Method;
  caller: Caller;
  session: ServerHttp2Session;
  seen: Seen;
}

type Refused = Pick<Entered, 'session' | 'seen'> & { method: Method | undefined };

function giveWay(call: GrpcCall): void {
  call.end({
    name: 'RESOURCE_EXHAUSTED',
    message: `This server has its ${MAX_OPEN_CALLS} calls without a key; try again later.`,
  });
}

/** A request of HTTP/2 that is a call of gRPC. Source: gRPC over HTTP/2, "Requests". */
function isCall(headers: IncomingHttpHeaders): boolean {
  const type = headers['content-type'] ?? '';
  return headers[':method'] === 'POST' && /^application\/grpc(?:$|[+;])/.test(type);
}

function noMethod(path: string): GrpcError {
  return new GrpcError('UNIMPLEMENTED', `there is no method ${path.slice(0, LONGEST_PATH)} on this server`);
}
