import { connect, type Socket } from 'node:net';

/** A stream read from a bare socket, at next to no cost. */
export class RawStream {
  bytes = 0;
  /** Data frames so far; heads of frames that lie over two reads count too. */
  frames = 0;
  /** Milliseconds from the request to the first data frame; null before. */
  firstFrameMs: number | null = null;
  /** Longest silence between two reads since the last call of resetGap. */
  longestGapMs = 0;
  /** The end of the stream as the server put it; null until then. */
  ended: string | null = null;
  readonly #socket: Socket;
  #lastReadMs = 0;
  /** End of the last read, where a frame's head may begin. */
  #tail = '';
  #last = '';
  /** The stream's last frame has come; the connection may stay. */
  isDone = false;

  constructor(url: string, path: string, body: object) {
    const { hostname, port } = new URL(url);
    const text = JSON.stringify(body);
    const startMs = performance.now();
    this.#socket = connect(Number(port), hostname, () => {
      this.#socket.write(
        `POST ${path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n` +
          `Content-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}`,
      );
    });
    this.#socket.setEncoding('latin1').on('data', (data: string) => {
      const nowMs = performance.now();
      if (this.#lastReadMs > 0) this.longestGapMs = Math.max(this.longestGapMs, nowMs - this.#lastReadMs);
      this.#lastReadMs = nowMs;
      this.bytes += data.length;
      const seen = this.#tail + data;
      for (let at = seen.indexOf('data: '); at >= 0; at = seen.indexOf('data: ', at + 6)) this.frames++;
      this.#tail = seen.slice(-5);
      // The body's end may come in a read of its own, and the frame may lie over two.
      this.isDone ||= (this.#last.slice(-20) + data).includes('data: [DONE]');
      this.#last = data;
      if (this.frames > 0) this.firstFrameMs ??= nowMs - startMs;
    });
    this.#socket
      .on('error', () => {})
      .on('close', () => {
        this.ended = this.#last;
      });
  }

  resetGap(): void {
    this.longestGapMs = 0;
  }

  close(): void {
    this.#socket.destroy();
  }
}
