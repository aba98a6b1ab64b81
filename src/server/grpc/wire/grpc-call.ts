import { constants, type IncomingHttpHeaders, type ServerHttp2Stream } from 'node:http2';
import { MAX_TIMER_MS } from '../../../../base/int32.js';
import { inflatedBody } from '../../web/bodies/inflate-body.js';
import { ApiError } from '../../web/errors.js';
import type { RequestMemory } from '../../web/memory/request-memory.js';
import { MessageReader, type RawMessage } from './message-reader.js';
import { MessageWriter } from './message-writer.js';
import { answerCoding, messageCoding, percentEncoded, timeoutMsOf } from './metadata.js';
import { type CallStatus, GrpcError, OK, STATUS_CODES } from './status.js';

export interface CallOptions {
  /** Bytes of the longest message, also when it is inflated. */
  maxMessageBytes: number;
  /** Milliseconds that a client may take over a part of a message, its own or the server's; undefined: any number. */
  stallLimitMs: number | undefined;
  /** Opens an account of the memory that a message and its answers take. */
  openMemory(): RequestMemory;
  onStall(): void;
  /** The first message has begun. @throws where there is no memory for the call */
  onFirst(): void;
}

/**
 * A message of a client. Its reader releases its memory once nothing of it, nor of its answer, is held any
 * more.
 */
export interface CallMessage {
  bytes: Uint8Array;
  memory: RequestMemory;
}

/** Milliseconds that the beginning of a call's one message may take: clients send it with the call. */
const FIRST_MS = 5000;
/** Bytes of the objects that a message has around it. */
const MESSAGE_BYTES = 16 * 1024;

/**
 * A call of a client on its HTTP/2 stream: messages in, messages out, a status. Source: gRPC over HTTP/2.
 *
 *   client   HEADERS   DATA (messages)   END_STREAM
 *   server             HEADERS   DATA (messages)   HEADERS (status)    or at once: HEADERS (status)
 */
export class GrpcCall {
  readonly headers: IncomingHttpHeaders;
  readonly path: string;
  /** Goes with the answer as x-request-id. */
  readonly requestId: string;
  /** How it has ended; null: it has not. The client may have left before receiving this. */
  status: CallStatus | null = null;
  readonly #stream: ServerHttp2Stream;
  readonly #options: CallOptions;
  /** Created when the first caller asks for `signal`. */
  #leaving: AbortController | null = null;
  /** Why the answer is no longer awaited. */
  #reason: DOMException | null = null;
  readonly #reader: MessageReader;
  /** Of the message that is on its way in. */
  #memory: RequestMemory | null = null;
  #writer: MessageWriter | null = null;
  /** A message that has not been requested yet. */
  #ready: RawMessage | null = null;
  /** Why what the client sends cannot be read. */
  #refusal: { error: unknown } | null = null;
  /** The client has sent all. */
  #isHalfClosed = false;
  /** The pending reader of a message. */
  #waiting: { wake(): void; timer: NodeJS.Timeout | undefined } | null = null;
  #deadline: NodeJS.Timeout | undefined;
  /** Something of a message has come. */
  #hasBegun = false;

  constructor(
    stream: ServerHttp2Stream,
    headers: IncomingHttpHeaders,
    requestId: string,
    options: CallOptions,
  ) {
    this.#stream = stream;
    this.headers = headers;
    this.path = String(headers[':path'] ?? '');
    this.requestId = requestId;
    this.#options = options;
    this.#reader = new MessageReader({
      maxBytes: options.maxMessageBytes,
      expect: (bytes) => {
        if (!this.#hasBegun) options.onFirst();
        this.#hasBegun = true;
        this.#account().expectBody(MESSAGE_BYTES + bytes);
      },
      hold: (bytes) => this.#account().holdBody(MESSAGE_BYTES + bytes),
    });
    stream.on('data', (chunk: Buffer) => this.#take(chunk));
    stream.on('end', () => {
      this.#isHalfClosed = true;
      this.#waiting?.wake();
    });
    // Whatever ends the stream, the effect is the same: the answer is no longer awaited.
    stream.on('error', () => {});
    stream.on('close', () => this.#leave());
  }

  /** Aborted when the answer is no longer awaited: the client has left, or its time is over. */
  get signal(): AbortSignal {
    if (this.#leaving === null) {
      this.#leaving = new AbortController();
      if (this.#reason !== null) this.#leaving.abort(this.#reason);
    }
    return this.#leaving.signal;
  }

  get isOver(): boolean {
    return this.status !== null || this.#reason !== null;
  }

  /** All that was to be sent has left, or is lost. */
  get isClosed(): boolean {
    return this.#stream.closed || this.#stream.destroyed;
  }

  /** Calls back when all that was to be sent has left, or is lost. */
  onClose(listener: () => void): void {
    if (this.#stream.destroyed) listener();
    else this.#stream.once('close', listener);
  }

  /** Begins to count the time that the client gives. @throws GrpcError for one that cannot be read */
  startDeadline(): void {
    const timeoutMs = timeoutMsOf(this.headers);
    if (timeoutMs === null || timeoutMs > MAX_TIMER_MS) return;
    this.#deadline = setTimeout(() => {
      this.#abort('The deadline of the call is over.', 'TimeoutError');
      this.end({ name: 'DEADLINE_EXCEEDED', message: 'Deadline Exceeded' });
    }, timeoutMs);
  }

  /**
   * The one message of a call that takes one. @throws GrpcError where there is none, or another one, and what its memory throws
   */
  async only(): Promise<CallMessage> {
    const message = await this.#next(true);
    if (message === null) throw new GrpcError('UNIMPLEMENTED', 'the call has no message; one is expected');
    let isOne = false;
    try {
      const second = await this.#next(true);
      second?.memory.release();
      isOne = second === null;
    } finally {
      if (!isOne) message.memory.release();
    }
    if (isOne) return message;
    throw new GrpcError('UNIMPLEMENTED', 'the call has several messages; one is expected');
  }

  /**
   * The next message of a stream of them; null: the client has sent its last one. Between requests for
   * messages, at most one window of the stream is taken from the client. @throws GrpcError, and what its
   * memory throws
   */
  next(): Promise<CallMessage | null> {
    return this.#next(false);
  }

  /**
   * Sends a message, whose bytes are those of all parts. Resolves when there is room for another one.
   * @throws rejects with a GrpcError where the client no longer reads it
   */
  async send(parts: readonly Uint8Array[]): Promise<void> {
    await this.#begun().write(parts);
  }

  /** Sends the last message, and that all is well. @throws as send */
  async reply(parts: readonly Uint8Array[]): Promise<void> {
    const writer = this.#begun();
    this.#settle(OK);
    this.#cutWhereStalled();
    await writer.writeLast(parts);
  }

  /** Ends the call; once it has ended this does nothing. */
  end(status: CallStatus): void {
    if (this.status !== null) return;
    this.#settle(status);
    const stream = this.#stream;
    if (stream.destroyed || stream.closed) return;
    this.#cutWhereStalled();
    if (this.#writer === null) {
      stream.respond({ ...answerHeaders(this.requestId), ...trailersOf(status) }, { endStream: true });
      this.#endInput();
    } else stream.end();
  }

  #settle(status: CallStatus): void {
    this.status = status;
    clearTimeout(this.#deadline);
    if (status.name !== 'OK') this.#abort('The call has ended.', 'AbortError');
    this.#waiting?.wake();
  }

  /** Asks the client to stop sending: input after its answer is not read. */
  #endInput(): void {
    const stream = this.#stream;
    if (this.#isHalfClosed) return;
    stream.resume();
    setImmediate(() => {
      if (!this.#isHalfClosed) stream.close(constants.NGHTTP2_NO_ERROR);
    });
  }

  /** Ends the stream at once, whatever has been sent to its client. */
  cut(): void {
    this.#stream.close(constants.NGHTTP2_CANCEL);
  }

  /**
   * Writes what follows the headers, which go out if they have not.
   * @throws GrpcError where the client no longer reads it
   */
  #begun(): MessageWriter {
    if (this.isOver || this.isClosed) throw new GrpcError('CANCELLED', 'The call is over.');
    if (this.#writer !== null) return this.#writer;
    const stream = this.#stream;
    const coding = answerCoding(this.headers);
    const headers = answerHeaders(this.requestId);
    stream.respond(coding === null ? headers : { ...headers, 'grpc-encoding': coding }, {
      waitForTrailers: true,
    });
    stream.on('wantTrailers', () => {
      stream.sendTrailers(trailersOf(this.status!));
      this.#endInput();
    });
    const { stallLimitMs } = this.#options;
    this.#writer = new MessageWriter(stream, { coding, stallLimitMs, onStall: () => this.#cutStalled() });
    return this.#writer;
  }

  /** The status is the last word; a client that does not even read that is cut off. */
  #cutWhereStalled(): void {
    const { stallLimitMs } = this.#options;
    if (stallLimitMs === undefined) return;
    const timer = setTimeout(() => this.#cutStalled(), stallLimitMs);
    this.#stream.once('close', () => clearTimeout(timer));
  }

  #cutStalled(): void {
    if (this.isClosed) return;
    this.#options.onStall();
    this.cut();
  }

  #account(): RequestMemory {
    this.#memory ??= this.#options.openMemory();
    return this.#memory;
  }

  #take(chunk: Buffer): void {
    if (this.status !== null) return;
    this.#reader.push(chunk);
    this.#read();
    if (this.#ready === null && this.#refusal === null) this.#waiting?.timer?.refresh();
    else if (this.#waiting === null) this.#stream.pause();
    else this.#waiting.wake();
  }

  #read(): void {
    if (this.#ready !== null || this.#refusal !== null) return;
    try {
      this.#ready = this.#reader.next();
    } catch (error) {
      this.#refusal = { error };
    }
  }

  async #next(isDue: boolean): Promise<CallMessage | null> {
    for (;;) {
      if (this.isOver) throw new GrpcError('CANCELLED', 'The call is over.');
      this.#read();
      if (this.#refusal !== null) throw this.#refusal.error;
      if (this.#ready !== null) return this.#takeReady(this.#ready);
      if (this.#isHalfClosed) {
        if (this.#reader.isWithin) throw new GrpcError('INTERNAL', 'the last message ends too early');
        return null;
      }
      await this.#more(isDue || this.#reader.isWithin);
    }
  }

  async #takeReady({ bytes, isCompressed }: RawMessage): Promise<CallMessage> {
    const memory = this.#account();
    this.#ready = null;
    this.#memory = null;
    if (!isCompressed) return { bytes, memory };
    try {
      return { bytes: await this.#inflated(bytes, memory), memory };
    } catch (error) {
      memory.release();
      throw error;
    }
  }

  /** Resolves when a message may be there, or the call is over. @param isDue a client that sends nothing is in the middle of something */
  #more(isDue: boolean): Promise<void> {
    const { stallLimitMs: stallMs } = this.#options;
    const stallLimitMs = this.#hasBegun ? stallMs : Math.min(FIRST_MS, stallMs ?? FIRST_MS);
    return new Promise((resolve, reject) => {
      const settle = (done: () => void) => {
        clearTimeout(timer);
        this.#waiting = null;
        done();
      };
      const message = `nothing of the message has come for ${stallLimitMs} ms, which is the limit`;
      const onStall = () => settle(() => reject(new GrpcError('DEADLINE_EXCEEDED', message)));
      const timer = isDue && stallLimitMs !== undefined ? setTimeout(onStall, stallLimitMs) : undefined;
      this.#waiting = { wake: () => settle(resolve), timer };
      this.#stream.resume();
    });
  }

  async #inflated(bytes: Uint8Array, memory: RequestMemory): Promise<Uint8Array> {
    const coding = messageCoding(this.headers);
    if (coding === null) {
      throw new GrpcError('INTERNAL', 'a message is marked as compressed, and grpc-encoding says identity');
    }
    const { maxMessageBytes: maxBytes } = this.#options;
    const hold = (inflated: number) => memory.holdBody(MESSAGE_BYTES + bytes.length + inflated);
    try {
      return await inflatedBody(bytes, coding, { maxBytes, hold });
    } catch (error) {
      // It is not in the coding that it is said to be in.
      if (!(error instanceof ApiError) || error.status !== 400) throw error;
      throw new GrpcError('INTERNAL', `a message could not be decompressed: it is said to be ${coding}`);
    }
  }

  #leave(): void {
    clearTimeout(this.#deadline);
    if (this.status?.name !== 'OK') this.#abort('The client has left.', 'AbortError');
    this.#memory?.release();
    this.#memory = null;
    this.#waiting?.wake();
  }

  #abort(message: string, name: string): void {
    if (this.#reason !== null) return;
    this.#reason = new DOMException(message, name);
    this.#leaving?.abort(this.#reason);
  }
}

/** Refuses a call before anything is created for it; further input of its client is not read. */
export function refuseStream(stream: ServerHttp2Stream, requestId: string, status: CallStatus): void {
  stream.on('error', () => {});
  if (stream.destroyed || stream.closed) return;
  stream.respond({ ...answerHeaders(requestId), ...trailersOf(status) }, { endStream: true });
  stream.resume();
  setImmediate(() => {
    if (!stream.readableEnded) stream.close(constants.NGHTTP2_NO_ERROR);
  });
}

function answerHeaders(requestId: string) {
  return {
    ':status': 200,
    'content-type': 'application/grpc',
    'grpc-accept-encoding': 'identity,deflate,gzip',
    'x-request-id': requestId,
  };
}

function trailersOf({ name, message }: CallStatus) {
  return {
    'grpc-status': String(STATUS_CODES[name]),
    ...(message !== '' && { 'grpc-message': percentEncoded(message) }),
  };
}
