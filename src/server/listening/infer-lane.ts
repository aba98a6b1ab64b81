import type { IncomingMessage, ServerResponse } from 'node:http';
import { BufferPool } from '../../../base/buffer-pool.js';
import type { Admit } from '../../../callbacks/infer/answer-tally.js';
import type { TraceSpan } from '../../../callbacks/infer/trace-span.js';
import type { AppOptions } from '../app/app.js';
import { observeExchange } from '../app/observe-http.js';
import { inferTerms } from '../inferring/infer-terms.js';
import { leavingSignal } from '../inferring/leaving-signal.js';
import { regionAccess } from '../inferring/platform.js';
import { noteProtocolError, protocolError } from '../kserve/errors.js';
import { answerInfer } from '../kserve/infer.js';
import { sendAnswer } from '../kserve/send-answer.js';
import { beginHttpSpan, endHttpSpan } from '../tracing/http-span.js';
import type { Tracing } from '../tracing/tracing.js';
import type { Caller } from '../web/access/api-keys.js';
import { callerOf } from '../web/access/auth.js';
import { hostCheck } from '../web/access/host-check.js';
import { AccessTally } from '../web/access-tally.js';
import { unlessStalled } from '../web/bodies/body-limit.js';
import { bodyCoding, plainBody } from '../web/bodies/inflate-body.js';
import { type BodyRoom, longBody, SMALL_BODY } from '../web/bodies/read-body.js';
import { shuttingDown } from '../web/errors.js';
import { ENGINE_HEADER, engineOf } from '../web/exchange.js';
import { heldWhile } from '../web/memory/hold-memory.js';
import { REQUEST_BYTES, textMemory } from '../web/memory/memory-estimates.js';
import { RequestMemory } from '../web/memory/request-memory.js';
import type { Quotas } from '../web/quotas/quotas.js';
import { openAiHeaders } from '../web/quotas/rate-limit-headers.js';
import { requestIdOf } from '../web/request-ids.js';

export type InferLaneOptions = Required<
  Pick<AppOptions, 'state' | 'metrics' | 'log' | 'accessLog' | 'apiKeys' | 'allowedHosts' | 'ledger'>
> & {
  platform: NonNullable<AppOptions['platform']>;
  maxBodyBytes: number;
  /** Most milliseconds that an answer may take; null: no limit. */
  requestTimeoutMs: number | null;
  /** Milliseconds without new bytes after which an unfinished body is refused; default: no limit. */
  stallLimitMs: number | undefined;
  /** Default: nothing is traced. */
  tracing?: Tracing | null;
  /** Limits of the keys; absent: nothing is counted. */
  quotas?: Quotas;
};

/** The path of a model's inference, in plain characters: MODEL, and VERSION where it has one. */
const PATH = /^\/v2\/models\/([\w.-]+)(?:\/versions\/(\d{1,18}))?\/infer$/;
const HANDLERS = ['/v2/models/{model}/infer', '/v2/models/{model}/versions/{version}/infer'] as const;

/** Bytes of bodies' memory that waits to be used again. */
const MAX_KEPT = 32 * 2 ** 20;

/** A request on its way through the lane. */
interface Lane {
  incoming: IncomingMessage;
  outgoing: ServerResponse;
  path: string;
  model: string;
  /** '': the latest. */
  version: string;
  declared: number;
  requestId: string;
  /** Name of the caller's key; '' until it is known. */
  key: string;
  /** What the model computes for it. */
  tally: AccessTally;
  /** undefined: it is not traced. */
  trace: TraceSpan | undefined;
}

/**
 * The short way of requests for tensors, which are many and small: programs' requests with a body whose length is declared go past the
 * app, whose routing, and the web's Request and Response, take longer than many models. What is checked is the same, by the same functions.
 *
 *   POST /v2/models/M/infer --+-- from a program --> host, key, drain, memory, body --> answerInfer --> socket
 *                             '-- from a web page, in chunks, too long --> the app, which does all of this too
 */
export class InferLane {
  readonly #options: InferLaneOptions;
  readonly #checkHost: (host: string | undefined) => void;
  /** For long bodies. */
  readonly #bodies = new BufferPool({ maxKept: 16, maxKeptBytes: MAX_KEPT });
  readonly #room: BodyRoom = {
    take: (bytes) => new Uint8Array(this.#bodies.take(bytes), 0, bytes),
    give: ({ buffer }) => this.#bodies.give(buffer),
  };

  constructor(options: InferLaneOptions) {
    this.#options = options;
    this.#checkHost = hostCheck(options.allowedHosts);
  }

  /** Answers a request of this kind; false: it is for the app. */
  take(incoming: IncomingMessage, outgoing: ServerResponse): boolean {
    const { method, url = '', headers } = incoming;
    if (method !== 'POST' || headers.origin !== undefined || headers['sec-fetch-site'] !== undefined) {
      return false;
    }
    const declared = Number(headers['content-length'] ?? Number.NaN);
    if (!(declared > 0 && declared <= this.#options.maxBodyBytes)) return false;
    const found = PATH.exec(url);
    if (found === null) return false;
    const [path, model = '', version = ''] = found;
    const requestId = requestIdOf(headers['x-request-id']);
    void this.#answer({
      incoming,
      outgoing,
      path,
      model,
      version,
      declared,
      requestId,
      key: '',
      tally: new AccessTally(performance.now()),
      trace: undefined,
    });
    return true;
  }

  async #answer(lane: Lane): Promise<void> {
    const startMs = performance.now();
    const { incoming, outgoing, path, requestId } = lane;
    const { metrics, accessLog, log, tracing = null } = this.#options;
    outgoing.setHeader('x-request-id', requestId);
    const handler = HANDLERS[lane.version === '' ? 0 : 1];
    if (tracing !== null) lane.trace = this.#span(tracing, lane, handler, startMs);
    try {
      await this.#infer(lane);
    } catch (error) {
      // Where a part of the answer is out, its client has left, or the answer's stream has cut it off.
      if (!outgoing.headersSent && !hasLeft(lane)) {
        noteProtocolError(error, { metrics, log, requestId, path });
        const { status, headers, body } = protocolError(error);
        outgoing.writeHead(status, headers);
        outgoing.end(body);
      }
    }
    const status = hasLeft(lane) && !outgoing.headersSent ? CLIENT_LEFT : outgoing.statusCode;
    if (lane.trace !== undefined) endHttpSpan(lane.trace, status, outgoing);
    observeExchange(metrics, accessLog, {
      startMs,
      handler,
      method: 'POST',
      path,
      status,
      requestId,
      key: lane.key,
      model: lane.model,
      tally: lane.tally,
      incoming,
      outgoing,
    });
  }

  #span(tracing: Tracing, lane: Lane, handler: string, startMs: number): TraceSpan | undefined {
    const { incoming, path, requestId, model } = lane;
    const { traceparent, tracestate } = incoming.headers;
    const headers = { traceparent, tracestate };
    const exchange = { method: 'POST', handler, path, requestId, startMs, model, headers };
    return beginHttpSpan(tracing, exchange) ?? undefined;
  }

  /** @throws InferError, ApiError before anything is written */
  async #infer(lane: Lane): Promise<void> {
    const { incoming, outgoing, model, version, declared, requestId } = lane;
    const { apiKeys, state, ledger, platform, maxBodyBytes, stallLimitMs } = this.#options;
    const { requestTimeoutMs: timeLimitMs, quotas } = this.#options;
    const { headers, socket } = incoming;
    this.#checkHost(headers.host);
    const caller = callerOf(apiKeys, headers.authorization, textOf(headers['x-api-key']));
    const { name } = caller;
    lane.key = name;
    if (state.isDraining) throw shuttingDown(state.drainEndsInMs);
    const memory = new RequestMemory(ledger.open('request', name), ledger.limit);
    await heldWhile(memory, outgoing, async () => {
      const coding = bodyCoding(headers['content-encoding']);
      memory.expectBody(REQUEST_BYTES + textMemory(declared));
      const isLong = declared > SMALL_BODY;
      const reading = isLong ? longBody(incoming, declared, this.#room, memory) : shortBody(lane, memory);
      const body = await unlessStalled(reading, incoming, stallLimitMs);
      const answer = await answerInfer(platform.repository.find(model, version), {
        body: await plainBody(body, coding, maxBodyBytes, memory),
        jsonLength: textOf(headers['inference-header-content-length']),
        signal: leavingSignal(socket),
        owner: name,
        memory,
        terms: inferTerms({
          ...{ caller, requestId, timeLimitMs, memory, tally: lane.tally },
          engine: engineOf(textOf(headers[ENGINE_HEADER])),
          admit: quotas && toldAdmit(quotas, caller, outgoing),
        }),
        regions: regionAccess(platform, caller, apiKeys, maxBodyBytes),
        trace: lane.trace,
      });
      await sendAnswer(outgoing, answer, textOf(headers['accept-encoding']));
      // Neither is read any more. After a failure one still may be: then they are left to garbage collection.
      answer.release?.();
      if (isLong) this.#bodies.give(body.buffer);
    });
  }
}

/** Checks a caller's limits, and writes what is left of them in the answer's headers. */
function toldAdmit(quotas: Quotas, caller: Caller, outgoing: ServerResponse): Admit | undefined {
  const admit = quotas.admitOf(caller);
  if (admit === undefined || caller.limits === undefined) return admit;
  return async (...asked) => {
    try {
      return await admit(...asked);
    } finally {
      const headers = openAiHeaders(quotas.stateOf(caller));
      if (!outgoing.headersSent) outgoing.setHeaders(new Map(Object.entries(headers)));
    }
  };
}

/** Status that the metrics have for a client that left before its answer. */
const CLIENT_LEFT = 499;

function hasLeft({ incoming, outgoing }: Lane): boolean {
  return outgoing.destroyed || incoming.socket.destroyed;
}

/** A body of the declared length, to which Node.js holds its sender. Rejects where the sender leaves before its end. */
function shortBody({ incoming, declared }: Lane, memory: RequestMemory): Promise<Uint8Array<ArrayBuffer>> {
  memory.holdBody(REQUEST_BYTES + declared);
  return new Promise((resolve, reject) => {
    const body = new Uint8Array(declared);
    let size = 0;
    incoming.on('data', (chunk: Buffer) => {
      body.set(chunk, size);
      size += chunk.length;
    });
    incoming.on('end', () => resolve(body));
    incoming.on('error', reject);
  });
}

const textOf = (header: string | string[] | undefined) =>
  Array.isArray(header) ? header.join(', ') : header;
