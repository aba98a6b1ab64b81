import { onAbort } from '../../../../base/on-abort.js';
import type { ReceivedMessage } from './socket-messages.js';

/** A source of messages that can be held up. */
export interface Pausable {
  pause(): void;
  resume(): void;
}

/** Messages that wait before the source is paused. One read from a connection may bring many more. */
const MAX_AHEAD = 16;
/** Bytes of the objects around a message that waits. */
const MESSAGE_BYTES = 512;

/** Messages of a client that have come and are not begun. While there are some, no more are read from its connection. */
export class WaitingMessages {
  readonly #source: Pausable;
  readonly #waiting: ReceivedMessage[] = [];
  #bytes = 0;
  #isPaused = false;
  #wake: (() => void) | null = null;

  constructor(source: Pausable) {
    this.#source = source;
  }

  get size(): number {
    return this.#waiting.length;
  }

  /** Bytes of memory that they take. */
  get bytes(): number {
    return this.#bytes + this.#waiting.length * MESSAGE_BYTES;
  }

  /** Nothing is read from the connection. */
  get isPaused(): boolean {
    return this.#isPaused;
  }

  add(message: ReceivedMessage): void {
    this.#waiting.push(message);
    this.#bytes += message.bytes.length;
    if (this.#waiting.length >= MAX_AHEAD && !this.#isPaused) {
      this.#isPaused = true;
      this.#source.pause();
    }
    this.#wake?.();
  }

  /** The next message, when there is one; null: the client has left. */
  async next(signal: AbortSignal): Promise<ReceivedMessage | null> {
    while (this.#waiting.length === 0 && !signal.aborted) await this.#added(signal);
    const message = this.#waiting.shift();
    if (message === undefined || signal.aborted) return null;
    this.#bytes -= message.bytes.length;
    if (this.#waiting.length === 0 && this.#isPaused) {
      this.#isPaused = false;
      this.#source.resume();
    }
    return message;
  }

  #added(signal: AbortSignal): Promise<void> {
    return new Promise<void>((resolve) => {
      const release = onAbort(signal, resolve);
      this.#wake = () => {
        this.#wake = null;
        release();
        resolve();
      };
    });
  }
}
