import type { StreamConnection } from './stream-connection.js';

const encoder = new TextEncoder();

export interface EventStreamOptions {
  /** Milliseconds of silence after which a frame without meaning is sent, so that proxies do not cut the connection. */
  keepAliveMs: number;
  /** What is sent then: text that readers of the stream skip. Default: a comment of server-sent events. */
  keepAliveText?: string;
  /** Milliseconds that a reader may leave a full buffer untouched before it is cut off. */
  stallLimitMs: number;
  /** Number of buffered bytes above which writers wait for the reader. */
  highWaterMark: number;
  /** Called when a reader is cut off. */
  onStall?: () => void;
}

const EVENT_COMMENT = ': keep-alive\n\n';

export const DEFAULT_EVENT_STREAM_OPTIONS: Readonly<EventStreamOptions> = {
  keepAliveMs: 5_000,
  stallLimitMs: 30_000,
  highWaterMark: 64 * 1024,
};

/**
 * A body of server-sent events, or of lines. While the reader lags, the writer must pause: the tokens of a
 * request then gather in its own queue, which the request's length bounds, and leave as one frame when the
 * reader comes back.
 *
 * With a connection only the first frames take the way through the body, by which the HTTP library sends the headers.
 * Once these are out and the library waits for more, frames are written to the connection itself, which costs a
 * fraction:
 *
 *   write(1) -> body -> library: headers, 1, read() -> pull     write(2), write(3) -> connection     close -> body -> end
 */
export class EventStream {
  readonly body: ReadableStream<Uint8Array>;
  readonly #options: EventStreamOptions;
  readonly #onGone: () => void;
  readonly #onDrain: () => void;
  readonly #connection: StreamConnection | null;
  readonly #keepAlive: NodeJS.Timeout;
  #controller!: ReadableStreamDefaultController<Uint8Array>;
  /** True once everything put into the body has been read, and more is waited for. */
  #isBodyRead = false;
  #closed = false;
  #lastWriteMs = performance.now();
  #isBehind = false;
  #stall: NodeJS.Timeout | null = null;

  /**
   * @param onGone called once when the reader leaves or is cut off.
   * @param onDrain called when a slow reader reads again.
   * @param connection connection that the body is sent on; null: none. It is closed where its reader is cut off. (An error
   * in the stream itself, which is what a reader without a connection gets, the HTTP library would print as a fault of
   * its own.)
   */
  constructor(
    options: EventStreamOptions,
    {
      onGone,
      onDrain = () => {},
      connection = null,
    }: {
      onGone: () => void;
      onDrain?: () => void;
      connection?: StreamConnection | null;
    },
  ) {
    this.#options = options;
    this.#onGone = onGone;
    this.#onDrain = onDrain;
    this.#connection = connection;
    this.body = new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          this.#controller = controller;
        },
        pull: () => {
          this.#isBodyRead = true;
          this.#release();
        },
        cancel: () => this.#end(true),
      },
      // With 0 nothing is asked for in advance: a pull then means that the data before was written to the connection.
      new ByteLengthQueuingStrategy({ highWaterMark: connection === null ? options.highWaterMark : 0 }),
    );
    this.#keepAlive = setInterval(() => this.#breakSilence(), options.keepAliveMs).unref();
  }

  get closed(): boolean {
    return this.#closed;
  }

  /** True while data waits for the reader. */
  get isBehind(): boolean {
    return this.#isBehind;
  }

  /** Writes whole frames. Returns false where the reader lags: the writer then waits for `onDrain`. */
  write(frames: string): boolean {
    if (this.#closed) return true;
    this.#lastWriteMs = performance.now();
    const connection = this.#direct();
    if (connection !== null) {
      // A closed connection soon reports this to the body's reader.
      if (connection.destroyed || connection.write(frames)) return true;
      if (!this.#isBehind) connection.once('drain', () => this.#release());
      this.#fallBehind();
      return false;
    }
    this.#enqueue(encoder.encode(frames));
    if (this.#hasRoom()) return true;
    this.#fallBehind();
    return false;
  }

  close(): void {
    if (this.#closed) return;
    this.#direct()?.flush();
    this.#controller.close();
    this.#end(false);
  }

  /** The connection, where frames may be written past the body; else null. */
  #direct(): StreamConnection | null {
    return this.#isBodyRead && this.#connection?.headersSent ? this.#connection : null;
  }

  #enqueue(bytes: Uint8Array): void {
    this.#isBodyRead = false;
    this.#controller.enqueue(bytes);
  }

  /** True where the body takes more. */
  #hasRoom(): boolean {
    const { highWaterMark } = this.#options;
    const free = this.#controller.desiredSize ?? 0;
    return (this.#connection === null ? free : free + highWaterMark) > 0;
  }

  #fallBehind(): void {
    if (this.#isBehind) return;
    this.#isBehind = true;
    this.#stall = setTimeout(() => this.#cutOff(), this.#options.stallLimitMs).unref();
  }

  #breakSilence(): void {
    const silentMs = performance.now() - this.#lastWriteMs;
    if (this.#closed || silentMs < this.#options.keepAliveMs / 2) return;
    const { keepAliveText = EVENT_COMMENT } = this.#options;
    const connection = this.#direct();
    if (connection === null) {
      if (this.#hasRoom()) this.#enqueue(encoder.encode(keepAliveText));
    } else if (!connection.destroyed && !connection.writableNeedDrain) connection.write(keepAliveText);
  }

  #cutOff(): void {
    if (this.#closed) return;
    // The server checks stalled sockets itself; whichever check is first counts.
    if (this.#connection?.destroyed !== true) this.#options.onStall?.();
    if (this.#connection === null) {
      this.#controller.error(new Error('The client did not read its stream in time.'));
    } else this.#connection.destroy();
    this.#end(true);
  }

  #release(): void {
    if (this.#stall !== null) clearTimeout(this.#stall);
    this.#stall = null;
    if (!this.#isBehind) return;
    this.#isBehind = false;
    this.#onDrain();
  }

  #end(gone: boolean): void {
    if (this.#closed) return;
    this.#closed = true;
    clearInterval(this.#keepAlive);
    this.#release();
    if (gone) this.#onGone();
  }
}
