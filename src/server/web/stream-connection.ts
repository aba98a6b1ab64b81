import type { ServerResponse } from 'node:http';

/** Connection of a streamed answer, as far as the stream needs it. */
export interface StreamConnection {
  readonly headersSent: boolean;
  readonly destroyed: boolean;
  /** True while the reader lags; 'drain' reports that it no longer does. */
  readonly writableNeedDrain: boolean;
  /**
   * Sends text, at the latest when the present turn of the event loop ends. Returns false where the reader
   * lags.
   */
  write(text: string): boolean;
  /** Sends all written text at once. */
  flush(): void;
  once(event: 'drain', listener: () => void): unknown;
  /** Closes the connection. */
  destroy(): unknown;
}

/** Most characters held until the present turn of the event loop ends. */
const MAX_HELD = 16 * 1024;

/** Connections with text to send. */
const waiting: HttpStreamConnection[] = [];

function flushAll(): void {
  for (const connection of waiting.splice(0)) connection.flush();
}

/**
 * Connection of a response of Node's HTTP server whose headers are out. All text written while one iteration of the
 * engine is answered, by several choices too, leaves as one chunk in one system call: Node's own `write` would send
 * each text in four pieces.
 *
 *   1f8\r\n data: {...}\n\n data: {...}\n\n \r\n        the end, "0\r\n\r\n", is Node's
 */
export class HttpStreamConnection implements StreamConnection {
  readonly #outgoing: ServerResponse;
  #text = '';

  constructor(outgoing: ServerResponse) {
    this.#outgoing = outgoing;
  }

  get headersSent(): boolean {
    return this.#outgoing.headersSent;
  }

  get destroyed(): boolean {
    return this.#outgoing.destroyed;
  }

  get writableNeedDrain(): boolean {
    return this.#outgoing.writableNeedDrain || this.#outgoing.socket?.writableNeedDrain === true;
  }

  write(text: string): boolean {
    if (this.#text === '' && waiting.push(this) === 1) process.nextTick(flushAll);
    this.#text += text;
    if (this.#text.length > MAX_HELD) this.flush();
    return !this.writableNeedDrain;
  }

  flush(): void {
    const text = this.#text;
    this.#text = '';
    const { socket, destroyed, chunkedEncoding } = this.#outgoing;
    if (text === '' || destroyed) return;
    // A client of HTTP/1.0 knows no chunks, and a response of HTTP/2 has its own frames.
    if (socket === null || chunkedEncoding !== true) this.#outgoing.write(text);
    else socket.write(`${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`);
  }

  once(event: 'drain', listener: () => void): void {
    const { socket } = this.#outgoing;
    if (socket?.writableNeedDrain) socket.once(event, listener);
    else this.#outgoing.once(event, listener);
  }

  destroy(): void {
    this.#outgoing.destroy();
  }
}
