import { connect, type Socket } from 'node:net';

/** Behaviour of a client that may be unkind. */
export interface Manners {
  /** Bytes of the body that are sent at once; the rest comes a byte at a time. Default: all of it. */
  sentAtOnce?: number;
  /** false: nothing of the answer is read before `ended`. Default true. */
  reads?: boolean;
  /** Without a Content-Length. */
  isChunked?: boolean;
  headers?: Readonly<Record<string, string>>;
}

/** A request on a connection of its own, written to the socket by hand. */
export class RawRequest {
  readonly #socket: Socket;
  #head = '';
  #timer: NodeJS.Timeout | null = null;
  #bytesRead = 0;
  /** Resolves with the status, or null where the connection was cut before one came. */
  readonly status: Promise<number | null>;
  /** Resolves when the connection has closed. */
  readonly closed: Promise<void>;

  constructor(port: number, method: string, path: string, body: Buffer, manners: Manners = {}) {
    const { reads = true, isChunked = false, sentAtOnce = body.length, headers = {} } = manners;
    const socket = connect(port, '127.0.0.1');
    this.#socket = socket;
    socket.on('error', () => {});
    const length = isChunked ? 'transfer-encoding: chunked' : `content-length: ${body.length}`;
    const more = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
    socket.write(
      `${method} ${path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n${length}\r\n${more.join('')}\r\n`,
    );
    if (isChunked) {
      socket.write(`${body.length.toString(16)}\r\n`);
      socket.write(body);
      socket.write('\r\n0\r\n\r\n');
    } else {
      socket.write(body.subarray(0, sentAtOnce));
      if (sentAtOnce < body.length) this.#trickle(body, sentAtOnce);
    }
    this.closed = new Promise((resolve) => socket.once('close', () => resolve()));
    this.status = new Promise((resolve) => {
      socket.once('close', () => resolve(null));
      if (!reads) return;
      socket.on('data', (bytes) => {
        this.#bytesRead += bytes.length;
        if (this.#head.length > 64) return;
        this.#head += bytes.toString('latin1', 0, 256);
        const found = /^HTTP\/1\.1 (\d{3})/.exec(this.#head)?.[1];
        if (found !== undefined) resolve(Number(found));
      });
    });
  }

  get bytesRead(): number {
    return this.#bytesRead;
  }

  leave(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#socket.destroy();
  }

  #trickle(body: Buffer, from: number): void {
    let at = from;
    this.#timer = setInterval(() => {
      if (at < body.length && this.#socket.writable) this.#socket.write(body.subarray(at, ++at));
    }, 200);
    this.#socket.once('close', () => clearInterval(this.#timer!));
  }
}
