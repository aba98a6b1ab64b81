const encoder = new TextEncoder();
const KEEP_ALIVE = encoder.encode(': keep-alive\n\n');

export interface EventStreamOptions {
  /** Milliseconds of silence after which a comment is sent, so that proxies do not cut the connection. */
  keepAliveMs: number;
  /** Milliseconds that a reader may leave a full buffer untouched before it is cut off. */
  stallLimitMs: number;
  /** Bytes buffered before writers wait for the reader. */
  highWaterMark: number;
}

export const DEFAULT_EVENT_STREAM_OPTIONS: Readonly<EventStreamOptions> = {
  keepAliveMs: 5_000,
  stallLimitMs: 30_000,
  highWaterMark: 64 * 1024,
};

/**
 * A body of server-sent events. Writers wait while the reader is behind; meanwhile the tokens of a request gather in
 * its own queue, which the request's length bounds, and leave as one frame when the reader comes back.
 */
export class EventStream {
  readonly body: ReadableStream<Uint8Array>;
  readonly #options: EventStreamOptions;
  readonly #onGone: () => void;
  readonly #disconnect: (() => void) | null;
  readonly #keepAlive: NodeJS.Timeout;
  #controller!: ReadableStreamDefaultController<Uint8Array>;
  #closed = false;
  #lastWriteMs = performance.now();
  #drained: Promise<void> | null = null;
  #resume: (() => void) | null = null;
  #stall: NodeJS.Timeout | null = null;

  /**
   * @param onGone called once when the reader leaves or is cut off.
   * @param disconnect closes the reader's connection, where there is one. (An error in the stream itself, which is
   * what a reader without a connection gets, the HTTP library would print as a fault of its own.)
   */
  constructor(
    options: EventStreamOptions,
    { onGone, disconnect = null }: { onGone: () => void; disconnect?: (() => void) | null },
  ) {
    this.#options = options;
    this.#onGone = onGone;
    this.#disconnect = disconnect;
    this.body = new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          this.#controller = controller;
        },
        pull: () => this.#release(),
        cancel: () => this.#end(true),
      },
      new ByteLengthQueuingStrategy({ highWaterMark: options.highWaterMark }),
    );
    this.#keepAlive = setInterval(() => this.#breakSilence(), options.keepAliveMs).unref();
  }

  get closed(): boolean {
    return this.#closed;
  }

  /** Writes whole frames. The promise is there only where the reader is behind; await it before the next write. */
  write(frames: string): Promise<void> | undefined {
    if (this.#closed) return undefined;
    this.#controller.enqueue(encoder.encode(frames));
    this.#lastWriteMs = performance.now();
    if ((this.#controller.desiredSize ?? 0) > 0) return undefined;
    if (this.#drained === null) {
      this.#drained = new Promise((resolve) => {
        this.#resume = resolve;
      });
      this.#stall = setTimeout(() => this.#cutOff(), this.#options.stallLimitMs).unref();
    }
    return this.#drained;
  }

  close(): void {
    if (this.#closed) return;
    this.#controller.close();
    this.#end(false);
  }

  #breakSilence(): void {
    const silentMs = performance.now() - this.#lastWriteMs;
    if (this.#closed || silentMs < this.#options.keepAliveMs / 2) return;
    if ((this.#controller.desiredSize ?? 0) > 0) this.#controller.enqueue(KEEP_ALIVE);
  }

  #cutOff(): void {
    if (this.#closed) return;
    if (this.#disconnect === null) {
      this.#controller.error(new Error('The client did not read its stream in time.'));
    } else this.#disconnect();
    this.#end(true);
  }

  #release(): void {
    if (this.#stall !== null) clearTimeout(this.#stall);
    this.#stall = null;
    this.#resume?.();
    this.#drained = null;
    this.#resume = null;
  }

  #end(gone: boolean): void {
    if (this.#closed) return;
    this.#closed = true;
    clearInterval(this.#keepAlive);
    this.#release();
    if (gone) this.#onGone();
  }
}
