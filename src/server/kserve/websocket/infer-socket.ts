import type { Socket } from 'node:net';
import type { WebSocket } from 'ws';
import { onAbort } from '../../../../base/on-abort.js';
import type { Admit } from '../../../../callbacks/infer/answer-tally.js';
import { InferStream } from '../../inferring/infer-stream.js';
import type { Metrics } from '../../metrics/metrics.js';
import type { Caller } from '../../web/access/api-keys.js';
import { AccessTally, microseconds } from '../../web/access-tally.js';
import { REQUEST_BYTES } from '../../web/memory/memory-estimates.js';
import type { RequestMemory } from '../../web/memory/request-memory.js';
import type { ServerLog } from '../../web/server-log.js';
import type { ServerState } from '../../web/server-state.js';
import type { SocketLink } from '../../web/upgrade.js';
import { noteProtocolError } from '../errors.js';
import { Arrivals } from './arrivals.js';
import { type CloseReason, closeReasonOf, STATUS_OF } from './close-reasons.js';
import { errorMessage, framesOf, type ReceivedMessage, type SentMessage } from './socket-messages.js';
import { type RequestServices, type SocketModel, type SocketRead, SocketRequest } from './socket-request.js';
import { WaitingMessages } from './waiting-messages.js';

/** What a socket needs of its server. */
export interface SocketServices extends RequestServices {
  state: Pick<ServerState, 'isDraining' | 'onDrain'>;
  metrics: Metrics;
  log: ServerLog;
  /** Milliseconds that a client may leave data unread before it is cut off. */
  stallLimitMs: number;
}

/** Who opened it, and for what. */
export interface SocketOpening {
  model: SocketModel;
  caller: Caller;
  requestId: string;
  path: string;
  /** Asks for each of its requests whether the caller's limits allow it; undefined: there are no limits. */
  admit: Admit | undefined;
  /** Fingerprint of the engine that its requests are for; undefined: any of the model. */
  engine: string | undefined;
}

/** Bytes of a socket by itself. */
export const SOCKET_BYTES = REQUEST_BYTES;
/** Bytes of answers that a client has not read with which none of its requests is begun. */
const MAX_UNREAD = 2 ** 18;
/** Messages that may wait: those of one read that are shorter than any request are far more. */
const MAX_WAITING = 4096;
/** Milliseconds between two pings. A client that gives no sign of life from one to the next is gone. */
const PING_MS = 30_000;
/** Most milliseconds from the beginning of a message to its end, as for the body of a request. */
const MESSAGE_MS = 300_000;

/** A WebSocket of a client that asks models: see InferStream for the order of its answers. */
export class InferSocket {
  readonly #socket: WebSocket;
  readonly #connection: Socket;
  readonly #services: SocketServices;
  readonly #opening: SocketOpening;
  readonly #beginWork: () => () => void;
  readonly #memory: RequestMemory;
  readonly #leaving = new AbortController();
  readonly #arrivals = new Arrivals();
  readonly #waiting: WaitingMessages;
  readonly #stream: InferStream<SocketRead, SentMessage, SocketRequest>;
  readonly #tally: AccessTally;
  readonly #startMs = performance.now();
  readonly #counts = { received: 0, sent: 0 };
  /** Why the server has closed it; null: it has not. */
  #reason: CloseReason | null = null;
  #isAlive = true;

  constructor(
    { socket, connection, beginWork }: SocketLink,
    services: SocketServices,
    opening: SocketOpening,
  ) {
    this.#socket = socket;
    this.#connection = connection;
    this.#beginWork = beginWork;
    this.#services = services;
    this.#opening = opening;
    this.#memory = services.openMemory(opening.caller);
    this.#waiting = new WaitingMessages(socket);
    this.#tally = new AccessTally(this.#startMs);
    this.#stream = new InferStream(
      {
        send: (message) => this.#send(message),
        fail: (error, request) => this.#send(errorMessage(request.id, error)),
      },
      services.state,
    );
  }

  /** Serves it until it is closed. */
  begin(): void {
    const { metrics, state, stallLimitMs } = this.#services;
    const socket = this.#socket;
    metrics.socketOpened();
    // In front of the library's own listener, which keeps what it reads.
    this.#connection.prependListener('data', (chunk: Buffer) => this.#noteRead(chunk.length));
    this.#connection.setTimeout(stallLimitMs, () => this.#cutWhereStalled());
    socket.on('message', (data: Buffer, isBinary) => this.#take({ bytes: data, isBinary }));
    socket.on('ping', (data) => this.#answerPing(data));
    socket.on('pong', (data) => this.#arrivals.control(data.length));
    socket.on('error', (error) => {
      this.#reason ??= closeReasonOf(error);
    });
    const pings = setInterval(() => this.#ping(), PING_MS).unref();
    const stopDraining = state.onDrain(() => this.#closeWhereDone());
    socket.on('close', (code) => {
      clearInterval(pings);
      stopDraining();
      this.#leaving.abort();
      this.#memory.release();
      this.#observe(code);
    });
    this.#hold();
    this.#run().catch((error: unknown) => {
      const { requestId, path } = this.#opening;
      this.#services.log.error({ err: error, requestId, path }, 'socket failed');
      this.#close('failed');
    });
  }

  /** Gives one request after the other to its model, while there is room for their answers. */
  async #run(): Promise<void> {
    const { signal } = this.#leaving;
    for (;;) {
      await this.#stream.room(signal);
      await this.#read(signal);
      const message = await this.#waiting.next(signal);
      if (message === null) return;
      this.#hold();
      const caller = this.#services.apiKeys.callerNamed(this.#opening.caller.name);
      if (caller === null) {
        this.#close('key');
        return;
      }
      await this.#stream.begin(this.#request(message, caller));
    }
  }

  /** Resolves when its client has read enough of what it was sent. */
  async #read(signal: AbortSignal): Promise<void> {
    while (this.#socket.bufferedAmount > MAX_UNREAD && !signal.aborted) {
      await new Promise<void>((resolve) => {
        const release = onAbort(signal, resolve);
        this.#connection.once('drain', () => {
          release();
          resolve();
        });
      });
    }
  }

  #request(message: ReceivedMessage, caller: Caller): SocketRequest {
    const { model, requestId, path, admit, engine } = this.#opening;
    const { metrics, log } = this.#services;
    const { signal } = this.#leaving;
    return new SocketRequest(message, this.#services, {
      model,
      caller,
      requestId,
      tally: this.#tally,
      admit,
      engine,
      signal,
      beginWork: this.#beginWork,
      noteFailure: (error) => {
        if (!signal.aborted) noteProtocolError(error, { metrics, log, requestId, path });
      },
      onOver: () => {
        this.#stream.noteOver();
        this.#closeWhereDone();
      },
    });
  }

  #take(message: ReceivedMessage): void {
    this.#arrivals.frame(message.bytes.length);
    if (!this.#isOpen) return;
    this.#counts.received++;
    this.#services.metrics.socketMessage('received');
    if (this.#waiting.size >= MAX_WAITING) {
      this.#close('flood');
      return;
    }
    this.#waiting.add(message);
    this.#hold();
  }

  #noteRead(bytes: number): void {
    this.#isAlive = true;
    this.#arrivals.read(bytes);
    this.#hold();
  }

  /** Holds the memory of what has come and is not begun; the socket ends where there is none. */
  #hold(): void {
    if (!this.#isOpen) return;
    try {
      this.#memory.holdBody(SOCKET_BYTES + this.#arrivals.held + this.#waiting.bytes);
    } catch {
      this.#services.metrics.refused('memory_full');
      this.#close('memory');
    }
  }

  get #isOpen(): boolean {
    return this.#socket.readyState === this.#socket.OPEN;
  }

  /** Sends a message. Resolves when the system has it; where the client has left, at once. */
  async #send(message: SentMessage): Promise<void> {
    if (this.#isOpen) {
      this.#counts.sent++;
      this.#services.metrics.socketMessage('sent');
      const frames = framesOf(message);
      await new Promise<void>((resolve) => {
        const release = onAbort(this.#leaving.signal, resolve);
        for (const [i, frame] of frames.entries()) {
          const fin = i === frames.length - 1;
          this.#socket.send(frame, { binary: message.isBinary, fin }, () => {
            if (!fin) return;
            release();
            resolve();
          });
        }
      });
    }
    message.free?.();
  }

  /** The latest of several pings is enough to answer, RFC 6455 has it in 5.5.3: a client that reads nothing gets no more of them. */
  #answerPing(data: Buffer): void {
    this.#arrivals.control(data.length);
    if (this.#isOpen && this.#socket.bufferedAmount <= MAX_UNREAD) this.#socket.pong(data);
  }

  #ping(): void {
    if (this.#arrivals.ageMs > MESSAGE_MS) this.#close('slow');
    // What a client sends meanwhile is not read.
    if (!this.#isOpen || this.#waiting.isPaused) return;
    if (!this.#isAlive) {
      this.#reason ??= 'gone';
      this.#socket.terminate();
      return;
    }
    this.#isAlive = false;
    this.#socket.ping();
  }

  /** A client that reads slowly is not cut, nor one that waits for an answer. */
  #cutWhereStalled(): void {
    if (this.#socket.bufferedAmount === 0) return;
    this.#reason ??= 'stalled';
    this.#services.metrics.readerStalled();
    this.#socket.terminate();
  }

  #closeWhereDone(): void {
    if (!this.#services.state.isDraining) return;
    if (this.#stream.underWay === 0 && this.#waiting.size === 0) this.#close('draining');
  }

  #close(reason: keyof typeof STATUS_OF): void {
    if (!this.#isOpen) return;
    this.#reason ??= reason;
    const [status, words] = STATUS_OF[reason];
    this.#socket.close(status, words);
    // The client's end of the handshake is to be read.
    this.#socket.resume();
  }

  #observe(code: number): void {
    const { metrics, log } = this.#services;
    const reason = this.#reason ?? 'client';
    metrics.socketClosed(reason);
    const { requestId, path, caller } = this.#opening;
    const durationMs = microseconds(performance.now() - this.#startMs);
    const told = { requestId, key: caller.name, path, ...this.#counts, ...this.#tally.fields(), durationMs };
    log.info({ ...told, code, reason }, 'socket closed');
  }
}
